package zero_test

import (
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/counting"
)

func TestConfigTakesWhatItsKeysAllow(t *testing.T) {
	config := must(zero.NewConfig())
	defer config.Close()
	for _, test := range []struct {
		name    string
		setting zero.Setting
		want    zero.Status // 0 = none
	}{
		{"integer", zero.Int(zero.KeyStage, 2), 0},
		{"enumeration", zero.Int(zero.KeyDivisor, zero.DivisorOne), 0},
		{"dtype", zero.Int(zero.KeyGradDType, zero.DTypeF32), 0},
		{"fraction", zero.Float(zero.KeyClipNorm, 0.5), 0},
		{"text", zero.Text(zero.KeyAlgorithm, "sgd"), 0},
		{"unknown key", zero.Int(zero.Key(99999), 1), zero.ErrUnsupported},
		{"integer for a fraction", zero.Int(zero.KeyLR, 1), zero.ErrInvalidArgument},
		{"fraction for an integer", zero.Float(zero.KeyStage, 1), zero.ErrInvalidArgument},
		{"text for an integer", zero.Text(zero.KeyStage, "1"), zero.ErrInvalidArgument},
		{"out of bounds", zero.Int(zero.KeyStage, 4), zero.ErrInvalidArgument},
		{"zero byte", zero.Text(zero.KeyAlgorithm, "adam\x00w"), zero.ErrInvalidArgument},
	} {
		err := test.setting(config)
		if test.want != 0 {
			wantError(t, test.name, err, test.want)
		} else if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestNewConfigGivesTheErrorOfASetting(t *testing.T) {
	config, err := zero.NewConfig(zero.Int(zero.KeyStage, 3), zero.Int(zero.KeyStage, 4))
	wantError(t, "NewConfig", err, zero.ErrInvalidArgument)
	if config != nil || !strings.Contains(err.Error(), "ZERO_KEY_STAGE is 4") {
		t.Errorf("got %v, %v", config, err)
	}
}

func TestBoundsTellTypeAndDefault(t *testing.T) {
	stage := must(zero.Bounds(zero.KeyStage))
	wantEqual(t, "stage", stage, zero.KeyBounds{Type: zero.KeyTypeI64, MaxI64: 3, DefaultI64: 1})
	rate := must(zero.Bounds(zero.KeyLR))
	wantEqual(t, "lr", rate, zero.KeyBounds{Type: zero.KeyTypeF64, MaxF64: 1e30, DefaultF64: 1e-3})
	wantEqual(t, "algorithm", must(zero.Bounds(zero.KeyAlgorithm)).Type, zero.KeyTypeStr)
	_, err := zero.Bounds(zero.Key(99999))
	wantError(t, "unknown key", err, zero.ErrUnsupported)
}

func TestConfigMayChangeAfterItWasUsed(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		config := must(zero.NewConfig(zero.Text(zero.KeyShardWeights, "3,1")))
		buffer := must(zero.NewBuffer[float32](ctx, r.Group, config, 1024))
		defer buffer.Close()
		check(config.SetStr(zero.KeyShardWeights, "1,3"))
		other := must(zero.NewBuffer[float32](ctx, r.Group, config, 1024))
		defer other.Close()
		check(config.Close())
		first, _, err := buffer.Shard()
		check(err)
		second, _, err := other.Shard()
		check(err)
		wantEqual(r, "first shard", len(first), []int{768, 256}[r.id])
		wantEqual(r, "second shard", len(second), []int{256, 768}[r.id])
	})
}

// Ranks that wait for one another while they use one Config must not wait for the Config.
func TestRanksMayShareAConfig(t *testing.T) {
	config := must(zero.NewConfig(zero.Text(zero.KeyShardWeights, "1,1,2")))
	defer config.Close()
	onRanks(t, 3, func(r rank) {
		buffer := must(zero.NewBuffer[float32](ctx, r.Group, config, 1024))
		defer buffer.Close()
		shard, _, err := buffer.Shard()
		check(err)
		wantEqual(r, "shard", len(shard), []int{256, 256, 512}[r.id])
	})
}

func TestAllocatorProvidesMemoryAndGetsItBack(t *testing.T) {
	allocator := counting.New()
	alone(t, func(r rank) {
		config := must(zero.NewConfig())
		defer config.Close()
		check(config.SetAllocator(allocator.Functions()))
		buffer := must(zero.NewBuffer[float32](ctx, r.Group, config, 1000))
		if allocator.Live() < 4000 {
			t.Errorf("%d bytes live with a buffer of 4000", allocator.Live())
		}
		check(buffer.Close())
		optimizer := must(zero.NewOptimizer(r.Group, config))
		must(optimizer.AddParam("w", zero.DTypeF32, []int{1000}, nil))
		check(optimizer.Seal(ctx))
		if allocator.Live() < 16000 {
			t.Errorf("%d bytes live with an optimizer of 16000", allocator.Live())
		}
		check(optimizer.Close())
	})
	if allocator.Calls() == 0 || allocator.Live() != 0 || allocator.Shared() != 0 {
		t.Errorf("%d calls, %d bytes live, %d shared at the end", allocator.Calls(), allocator.Live(), allocator.Shared())
	}
}

func TestAllocatorIsToldOfSharedMemory(t *testing.T) {
	allocator := counting.New()
	onRanks(t, 2, func(r rank) {
		config := must(zero.NewConfig())
		defer config.Close()
		check(config.SetAllocator(allocator.Functions()))
		optimizer := must(zero.NewOptimizer(r.Group, config))
		defer optimizer.Close()
		must(optimizer.AddParam("w", zero.DTypeF32, []int{1000}, nil))
		check(optimizer.Seal(ctx))
		if allocator.Shared() <= 0 {
			t.Errorf("the allocator was told of %d shared bytes", allocator.Shared())
		}
		check(r.Barrier(ctx))
	})
	wantEqual(t, "live bytes", allocator.Live(), 0)
	wantEqual(t, "shared bytes", allocator.Shared(), 0)
}

func TestAllocatorNeedsBothFunctionsOrNone(t *testing.T) {
	config := must(zero.NewConfig())
	defer config.Close()
	functions := counting.New().Functions()
	functions.Free = nil
	wantError(t, "without free", config.SetAllocator(functions), zero.ErrInvalidArgument)
	check(config.SetAllocator(zero.Allocator{}))
}
