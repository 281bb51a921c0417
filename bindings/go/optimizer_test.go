package zero_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
)

func TestScalarsAreReadAndSet(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		wantEqual(r, "default rate", must(optimizer.GetF64(0, zero.KeyLR)), 1e-3)
		check(optimizer.SetF64(0, zero.KeyLR, 0.5))
		wantEqual(r, "rate", must(optimizer.GetF64(0, zero.KeyLR)), 0.5)
		train(r, optimizer, 2)
		wantEqual(r, "steps", must(optimizer.GetI64(zero.KeyStepCount)), 2)
		check(optimizer.SetI64(zero.KeyStepCount, 10))
		wantEqual(r, "steps after that", train(r, optimizer, 1).Step, 11)
		wantError(r, "set", optimizer.SetF64(1, zero.KeyLR, 0.5), zero.ErrInvalidArgument)
		wantError(r, "key", optimizer.SetF64(0, zero.KeyStage, 1), zero.ErrUnsupported)
		wantError(r, "scalar", optimizer.SetI64(zero.KeyStage, 1), zero.ErrUnsupported)
		_, err := optimizer.GetI64(zero.KeyStage)
		wantError(r, "reading a scalar", err, zero.ErrUnsupported)
		_, err = optimizer.GetF64(0, zero.KeyStage)
		wantError(r, "reading a rate", err, zero.ErrUnsupported)
	})
}

func TestParameterSetsHaveTheirOwnAlgorithm(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := must(zero.NewOptimizer(r.Group, nil))
		defer optimizer.Close()
		sgd := must(zero.NewConfig(zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 1)))
		defer sgd.Close()
		set := must(optimizer.AddSet(sgd))
		wantEqual(r, "set", set, 1)
		inSet := must(zero.NewConfig(zero.Int(zero.KeySet, set)))
		defer inSet.Close()
		must(optimizer.AddParam("adamw", zero.DTypeF32, []int{1}, nil))
		must(optimizer.AddParam("sgd", zero.DTypeF32, []int{1}, inSet))
		check(optimizer.Seal(ctx))
		check(optimizer.Begin(ctx, zero.SourceLocal))
		for id := 0; id < 2; id++ {
			check(zero.GiveGrad(ctx, optimizer, id, 0, []float32{0.25}))
		}
		must(optimizer.Step(ctx))
		value := make([]float32, 1)
		check(zero.CopyParam(ctx, optimizer, 1, value))
		wantEqual(r, "sgd", value[0], -0.25)
		check(zero.CopyParam(ctx, optimizer, 0, value))
		if math.Abs(float64(value[0])+1e-3) > 1e-6 {
			t.Errorf("adamw: got %v, want about -0.001", value[0])
		}
	})
}

// A run that is saved slot by slot goes on with the same bits at another stage.
func TestSlotsSaveARun(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		train(r, optimizer, 2)
		other := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyStage, 3))
		defer other.Close()
		for id := range shapes {
			for _, slot := range must(optimizer.Slots(id)) {
				values := make([]float32, slot.Count)
				wantEqual(r, slot.Slot.String(), slot.DType, zero.DTypeF32)
				check(zero.ReadSlot(ctx, optimizer, id, slot.Slot, 0, values))
				if r.id == 1 {
					values = nil
				}
				check(zero.WriteSlot(ctx, other, id, slot.Slot, 0, values))
			}
		}
		check(other.SetI64(zero.KeyStepCount, must(optimizer.GetI64(zero.KeyStepCount))))
		check(other.Begin(ctx, zero.SourceShards))
		train(r, optimizer, 1)
		train(r, other, 1)
		wantSlices(r, "parameters", params(other), params(optimizer))
	})
}

func TestInitialisersDependOnNothingButSeedAndPlace(t *testing.T) {
	initialised := func(size, stage int) (values []float32) {
		onRanks(t, size, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyStage, stage))
			defer optimizer.Close()
			check(optimizer.InitParam(0, zero.InitialiserNormal, 1, 2, 3))
			check(optimizer.InitParam(1, zero.InitialiserUniform, 4, 5, 3))
			check(optimizer.InitParam(2, zero.InitialiserConstant, 6, 0, 3))
			wantError(r, "deviation", optimizer.InitParam(0, zero.InitialiserNormal, 1, -2, 3), zero.ErrInvalidArgument)
			wantError(r, "initialiser", optimizer.InitParam(0, zero.Initialiser(9), 1, 2, 3), zero.ErrInvalidArgument)
			check(optimizer.Begin(ctx, zero.SourceShards))
			if read := params(optimizer); r.id == 0 {
				values = read
			}
		})
		return values
	}
	want := initialised(1, 0)
	wantSlices(t, "3 ranks, stage 3", initialised(3, 3), want)
	if want[0] == want[1] || want[1200] < 4 || want[1200] >= 5 || want[1230] != 6 {
		t.Errorf("got %v, %v, %v, %v", want[0], want[1], want[1200], want[1230])
	}
}

func TestBfloat16ParametersHaveAFloat32Master(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeBF16, zero.Int(zero.KeyGradDType, zero.DTypeF32), zero.Int(zero.KeyStage, 2))
		defer optimizer.Close()
		const one, ones = zero.BF16(0x3f80), 30
		if r.id == 0 {
			param := must(zero.Acquire[zero.BF16](ctx, optimizer, 1))
			for i := range param {
				param[i] = one
			}
			check(optimizer.Release(1))
		}
		check(optimizer.Begin(ctx, zero.SourceRoot))
		wantEqual(r, "slots", fmt.Sprint(must(optimizer.Slots(1))),
			"[{param bf16 30} {master f32 30} {first_moment f32 30} {second_moment f32 30}]")
		_, _, err := zero.AcquireGrad[zero.BF16](ctx, optimizer, 1)
		wantError(r, "gradients are f32", err, zero.ErrInvalidArgument)
		grad, _, err := zero.AcquireGrad[float32](ctx, optimizer, 1)
		check(err)
		copy(grad, gradient(r, 1, 0, ones))
		check(optimizer.GradReady(ctx, 1))
		must(optimizer.Step(ctx))
		master := make([]float32, ones)
		check(zero.ReadSlot(ctx, optimizer, 1, zero.SlotMaster, 0, master))
		if change := math.Abs(float64(master[0]) - 1); math.Abs(change-1e-3) > 1e-4 {
			t.Errorf("master changed by %v, want about 0.001", change)
		}
		wantError(r, "slot type", zero.ReadSlot(ctx, optimizer, 1, zero.SlotParam, 0, master), zero.ErrInvalidArgument)
	})
}

func TestEightBitParametersAreReadAsCodesAndScales(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyParamDType, zero.DTypeF8E4M3))
		defer optimizer.Close()
		begin(r, optimizer)
		codes := make([]zero.F8E4M3, 1200)
		check(zero.ReadSlot(ctx, optimizer, 0, zero.SlotParam, 0, codes))
		wantEqual(r, "the largest code, 448", codes[255], 0x7e)
		index := 0
		for must(zero.Views[float32](optimizer, zero.SlotFirstMoment))[index].Param != 0 {
			index++
		}
		scale := must(zero.ViewAt[float32](optimizer, index, zero.SlotParamScale))
		wantEqual(r, "scales", len(scale.Data), 5)
		wantEqual(r, "scale", scale.Data[0], 256.0/448)
	})
}

// Each parameter has one count, whatever the number of its elements.
func TestUpdatesOfParametersThatMayStayUntouchedAreCounted(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyUnfilled, zero.UnfilledUntouched))
		defer optimizer.Close()
		begin(r, optimizer)
		for step := 0; step < 3; step++ {
			check(zero.GiveGrad(ctx, optimizer, 0, 0, make([]float32, 1200)))
			if step == 1 {
				check(zero.GiveGrad(ctx, optimizer, 1, 0, make([]float32, 30)))
			}
			must(optimizer.Step(ctx))
		}
		counts := func() []int64 {
			values := make([]int64, len(shapes))
			for id := range values {
				check(zero.ReadSlot(ctx, optimizer, id, zero.SlotUpdateCount, 0, values[id:id+1]))
			}
			return values
		}
		want := []int64{3, 1, 0}
		wantSlices(r, "counts", counts(), want)
		for _, view := range must(zero.Views[int64](optimizer, zero.SlotUpdateCount)) {
			wantSlices(r, "view", view.Data, want[view.Param:view.Param+1])
		}
		check(optimizer.SetI64(zero.KeyStepCount, 9))
		check(zero.WriteSlot(ctx, optimizer, 1, zero.SlotUpdateCount, 0, []int64{4}[:1-r.id]))
		wantSlices(r, "counts", counts(), []int64{9, 4, 9})
	})
}

func TestModuleBuffersAreSynchronisedByTheirRules(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := must(zero.NewOptimizer(r.Group, nil))
		defer optimizer.Close()
		must(optimizer.AddParam("w", zero.DTypeF32, []int{3}, nil))
		mean := must(optimizer.AddModuleBuffer("mean", zero.DTypeF32, []int{2}, zero.SyncAverage))
		count := must(optimizer.AddModuleBuffer("count", zero.DTypeI64, nil, zero.SyncBroadcast))
		own := must(optimizer.AddModuleBuffer("own", zero.DTypeU8, []int{1}, zero.SyncNone))
		_, err := optimizer.AddModuleBuffer("average", zero.DTypeI64, nil, zero.SyncAverage)
		wantError(r, "average of integers", err, zero.ErrUnsupported)
		_, err = optimizer.AddModuleBuffer("a\x00b", zero.DTypeI64, nil, zero.SyncNone)
		wantError(r, "zero byte", err, zero.ErrInvalidArgument)
		check(optimizer.Seal(ctx))
		means := must(zero.ModuleBuffer[float32](optimizer, mean))
		counts := must(zero.ModuleBuffer[int64](optimizer, count))
		owns := must(zero.ModuleBuffer[uint8](optimizer, own))
		means[1], counts[0], owns[0] = float32(r.id), int64(7+r.id), uint8(r.id)
		check(optimizer.SyncModuleBuffers(ctx))
		wantSlices(r, "average", means, []float32{0, 0.5})
		wantEqual(r, "broadcast", counts[0], 7)
		wantEqual(r, "none", owns[0], uint8(r.id))
		_, err = zero.ModuleBuffer[float32](optimizer, count)
		wantError(r, "element type", err, zero.ErrInvalidArgument)
		_, err = zero.ModuleBuffer[float32](optimizer, 9)
		wantError(r, "id", err, zero.ErrInvalidArgument)
	})
}

func TestVerifyFindsChangedMemory(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		result := must(optimizer.Verify(ctx))
		if result.Found != zero.FindingNone || result.Chunks != 0 || result.ReplicaBytes == 0 {
			t.Errorf("got %+v", result)
		}
		if r.id == 1 {
			param := must(zero.Acquire[float32](ctx, optimizer, 1))
			param[3] = -1
			check(optimizer.Release(1))
		}
		result = must(optimizer.Verify(ctx))
		result.ReplicaBytes, result.ShardBytes = 0, 0
		if result.Found != zero.FindingReplicas || result.Chunks != 1 || result.Param != 1 || result.Slot != zero.SlotParam ||
			result.Offset != 3 || result.Count != 1 {
			t.Errorf("got %+v", result)
		}
	})
}

func TestOrdersMustNameEveryParameter(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		config := must(zero.NewConfig(zero.Int(zero.KeyStage, 3), zero.Int(zero.KeyBucketBytes, 1024)))
		defer config.Close()
		optimizer := must(zero.NewOptimizer(r.Group, config))
		defer optimizer.Close()
		for id, shape := range shapes {
			must(optimizer.AddParam(fmt.Sprintf("p%d", id), zero.DTypeF32, shape, nil))
		}
		wantError(r, "order", optimizer.SetOrder([]int{0, 1}), zero.ErrInvalidArgument)
		wantError(r, "gather order", optimizer.SetGatherOrder([]int{0, 9}), zero.ErrInvalidArgument)
		check(optimizer.SetOrder([]int{1, 0, 2}))
		check(optimizer.SetGatherOrder([]int{0, 1, 2, 0}))
		check(optimizer.Seal(ctx))
		begin(r, optimizer)
		wantEqual(r, "steps", train(r, optimizer, 2).Step, 2)
	})
}

// onHalves runs body on two ranks of a model group, each with an optimizer of its own for one of two halves.
func onHalves(t *testing.T, body func(r rank, optimizer *zero.Optimizer)) {
	t.Helper()
	onRanks(t, 2, func(r rank) {
		replica := must(r.Split(ctx, r.id, 0))
		defer replica.Close()
		config := must(zero.NewConfig(zero.Int(zero.KeyGradNorm, 1)))
		defer config.Close()
		optimizer := must(zero.NewOptimizer(replica, config))
		defer optimizer.Close()
		check(optimizer.SetModelGroup(r.Group))
		must(optimizer.AddParam("half", zero.DTypeF32, []int{2}, nil))
		check(optimizer.Seal(ctx))
		check(optimizer.Begin(ctx, zero.SourceLocal))
		body(r, optimizer)
	})
}

func TestModelGroupMakesOneNormOfTwoHalves(t *testing.T) {
	onHalves(t, func(r rank, optimizer *zero.Optimizer) {
		check(zero.GiveGrad(ctx, optimizer, 0, 0, []float32{float32(3 + r.id), 0}))
		wantEqual(r, "norm", must(optimizer.Step(ctx)).GradNorm, 5)
		wantError(r, "after seal", optimizer.SetModelGroup(r.Group), zero.ErrState)
	})
}

func TestTiedParametersShareTheirGradientsType(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := must(zero.NewOptimizer(r.Group, nil))
		defer optimizer.Close()
		narrow := must(zero.NewConfig(zero.Int(zero.KeyGradDType, zero.DTypeF32)))
		defer narrow.Close()
		first := must(optimizer.AddParam("embedding", zero.DTypeBF16, []int{4}, narrow))
		tied := must(zero.NewConfig(zero.Int(zero.KeyTiedTo, first)))
		defer tied.Close()
		second := must(optimizer.AddParam("output", zero.DTypeBF16, []int{4}, tied))
		check(optimizer.Seal(ctx))
		check(optimizer.Begin(ctx, zero.SourceLocal))
		check(zero.GiveGrad(ctx, optimizer, first, 0, []float32{1, 1, 1, 1}))
		check(zero.GiveGrad(ctx, optimizer, second, 0, []float32{1, 1, 1, 1}))
		wantEqual(r, "step", must(optimizer.Step(ctx)).Step, 1)
	})
}

// It must not be taken for one that ties to parameter 0.
func TestTheZeroConfigIsEmpty(t *testing.T) {
	alone(t, func(r rank) {
		var empty zero.Config
		wantError(r, "set", empty.SetI64(zero.KeyStage, 2), zero.ErrBadHandle)
		optimizer := must(zero.NewOptimizer(r.Group, &empty))
		defer optimizer.Close()
		must(optimizer.AddParam("first", zero.DTypeF32, []int{4}, &empty))
		second := must(optimizer.AddParam("second", zero.DTypeBF16, []int{4}, &empty))
		check(optimizer.Seal(ctx))
		check(optimizer.Begin(ctx, zero.SourceLocal))
		_, _, err := zero.AcquireGrad[float32](ctx, optimizer, second)
		wantError(r, "float32", err, zero.ErrInvalidArgument)
		check(zero.GiveGrad(ctx, optimizer, second, 0, make([]zero.BF16, 4)))
		check(empty.Close())
	})
}

func TestStatisticsTellMemoryTrafficAndTime(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyTraceEvents, 100))
		defer optimizer.Close()
		begin(r, optimizer)
		train(r, optimizer, 2)
		total := must(optimizer.Memory(zero.MemoryTotal))
		if total.Formula == 0 || total.Now < total.Formula || total.Peak < total.Now {
			t.Errorf("memory %+v", total)
		}
		if sent := must(optimizer.Traffic(zero.OperationReduceScatter)); sent.SentElements == 0 {
			t.Errorf("traffic %+v", sent)
		}
		if stats := must(optimizer.StepStats()); stats.Steps != 2 {
			t.Errorf("steps %+v", stats)
		}
		if text := must(optimizer.Describe()); !strings.Contains(text, "adamw") {
			t.Errorf("description %q", text)
		}
		var trace struct{ TraceEvents []any }
		if err := json.Unmarshal([]byte(must(optimizer.Trace())), &trace); err != nil || len(trace.TraceEvents) == 0 {
			t.Errorf("trace of %d events: %v", len(trace.TraceEvents), err)
		}
	})
}

func TestElementTypesAreChecked(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		_, err := zero.Acquire[float64](ctx, optimizer, 0)
		wantError(r, "Acquire", err, zero.ErrInvalidArgument)
		wantEqual(r, "text", err.Error(), "libzero: ZERO_E_INVALID_ARGUMENT: parameter 0 is f32, but the slice holds f64")
		_, _, err = zero.AcquireGrad[zero.BF16](ctx, optimizer, 0)
		wantError(r, "AcquireGrad", err, zero.ErrInvalidArgument)
		wantError(r, "GiveGrad", zero.GiveGrad(ctx, optimizer, 0, 0, []int32{1}), zero.ErrInvalidArgument)
		wantError(r, "CopyParam", zero.CopyParam(ctx, optimizer, 0, make([]float64, 1200)), zero.ErrInvalidArgument)
		wantError(r, "ReadSlot", zero.ReadSlot(ctx, optimizer, 0, zero.SlotParam, 0, []float64{0}), zero.ErrInvalidArgument)
		wantError(r, "WriteSlot", zero.WriteSlot(ctx, optimizer, 0, zero.SlotParam, 0, []float64{0}), zero.ErrInvalidArgument)
	})
}

func TestCallsInTheWrongPhaseAreErrors(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := must(zero.NewOptimizer(r.Group, nil))
		defer optimizer.Close()
		must(optimizer.AddParam("w", zero.DTypeF32, []int{3}, nil))
		_, err := optimizer.AddParam("w", zero.DTypeF32, []int{3}, nil)
		wantError(r, "name twice", err, zero.ErrInvalidArgument)
		_, err = optimizer.AddParam("a\x00b", zero.DTypeF32, []int{3}, nil)
		wantError(r, "zero byte", err, zero.ErrInvalidArgument)
		_, err = optimizer.AddParam("", zero.DTypeF32, []int{3}, nil)
		wantError(r, "no name", err, zero.ErrInvalidArgument)
		_, err = optimizer.AddParam("v", zero.DTypeI32, []int{3}, nil)
		wantError(r, "dtype", err, zero.ErrUnsupported)
		_, err = optimizer.AddParam("v", zero.DTypeF32, []int{-1}, nil)
		wantError(r, "shape", err, zero.ErrInvalidArgument)
		wantError(r, "begin before seal", optimizer.Begin(ctx, zero.SourceLocal), zero.ErrState)
		_, err = optimizer.Slots(0)
		wantError(r, "slots before seal", err, zero.ErrState)
		check(optimizer.Seal(ctx))
		wantError(r, "seal twice", optimizer.Seal(ctx), zero.ErrState)
		_, err = optimizer.Step(ctx)
		wantError(r, "step before begin", err, zero.ErrState)
		wantError(r, "source", optimizer.Begin(ctx, zero.Source(9)), zero.ErrInvalidArgument)
		check(optimizer.Begin(ctx, zero.SourceLocal))
		for _, id := range []int{-1, 1} {
			_, err = zero.Acquire[float32](ctx, optimizer, id)
			wantError(r, "Acquire of an unknown id", err, zero.ErrInvalidArgument)
			_, _, err = zero.AcquireGrad[float32](ctx, optimizer, id)
			wantError(r, "AcquireGrad of an unknown id", err, zero.ErrInvalidArgument)
			wantError(r, "GradReady of an unknown id", optimizer.GradReady(ctx, id), zero.ErrInvalidArgument)
			wantError(r, "Release of an unknown id", optimizer.Release(id), zero.ErrInvalidArgument)
		}
		wantError(r, "not acquired", optimizer.Release(0), zero.ErrState)
		wantError(r, "no gradient acquired", optimizer.GradReady(ctx, 0), zero.ErrState)
		wantError(r, "range", zero.GiveGrad(ctx, optimizer, 0, 0, make([]float32, 4)), zero.ErrInvalidArgument)
		check(zero.GiveGrad(ctx, optimizer, 0, 0, make([]float32, 3)))
		wantError(r, "gradient twice", zero.GiveGrad(ctx, optimizer, 0, 0, make([]float32, 3)), zero.ErrState)
		wantError(r, "micro-step", optimizer.MicroStep(ctx, zero.MicroStep(9)), zero.ErrInvalidArgument)
		wantError(r, "weight", optimizer.SetWeight(1), zero.ErrState)
		_, err = optimizer.Trace()
		wantError(r, "trace", err, zero.ErrState)
		config := must(zero.NewConfig(zero.Text(zero.KeyAlgorithm, "nothing")))
		defer config.Close()
		_, err = zero.NewOptimizer(r.Group, config)
		wantError(r, "algorithm", err, zero.ErrUnsupported)
		_, err = optimizer.AddSet(config)
		wantError(r, "set after seal", err, zero.ErrState)
	})
}
