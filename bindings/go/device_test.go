package zero_test

import (
	"fmt"
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/devices"
)

// needDevices skips tests where there are none.
func needDevices(t *testing.T) {
	if missing := devices.Missing(); missing != "" {
		t.Skip(missing)
	}
}

// manner is how a training on a device gives gradients and reads parameters.
type manner struct {
	tier  zero.Tier
	gives string // "given", "bulk", "acquired", "host"
}

// deviceRun is a training of one rank whose gradients and parameters lie on a device.
type deviceRun struct {
	rank
	*zero.Optimizer
	*devices.Stream
	manner
}

func (d deviceRun) memory(values []float32) zero.DeviceSlice[float32] {
	slice := zero.DeviceSlice[float32]{Device: d.Device, Address: d.Alloc(len(values)), Len: len(values)}
	d.Put(slice.Address, values)
	return slice
}

func (d deviceRun) begin() {
	for id := range shapes {
		if d.tier == zero.TierHost {
			break
		}
		param := must(zero.AcquireDevice[float32](ctx, d.Optimizer, id))
		if d.rank.id == 0 {
			d.Put(param.Address, ramp[float32](param.Len, 1))
		}
		check(d.Release(id))
	}
	if d.tier == zero.TierHost {
		begin(d.rank, d.Optimizer)
		return
	}
	check(d.Begin(ctx, zero.SourceRoot))
}

func (d deviceRun) give(step int) {
	grads := slices(d.rank, step)
	var given []zero.DeviceSlice[float32]
	for i, id := range reversed {
		switch d.gives {
		case "given":
			whole := d.memory(grads[i])
			half := whole.Len / 2
			check(zero.GiveGradDevice(ctx, d.Optimizer, id, half, whole.Slice(half, whole.Len)))
			check(zero.GiveGradDevice(ctx, d.Optimizer, id, 0, whole.Slice(0, half)))
		case "acquired":
			grad, add, err := zero.AcquireGradDevice[float32](ctx, d.Optimizer, id)
			check(err)
			wantEqual(d.rank, "add", add, false)
			d.Put(grad.Address, grads[i])
			check(d.GradReady(ctx, id))
		case "host":
			check(zero.GiveGrad(ctx, d.Optimizer, id, 0, grads[i]))
		default:
			given = append(given, d.memory(grads[i]))
		}
	}
	if given != nil {
		check(must(zero.NewGradientsDevice(d.Optimizer, reversed, given)).Ready(ctx))
	}
}

// whole returns a parameter by way of the device.
func (d deviceRun) whole(id int) []float32 {
	if d.tier == zero.TierDevice && d.gives != "given" {
		param := must(zero.AcquireDevice[float32](ctx, d.Optimizer, id))
		wantEqual(d.rank, "device", param.Device, d.Device)
		values := d.Get(param.Address, param.Len)
		check(d.Release(id))
		return values
	}
	dst := d.memory(make([]float32, len(slices(d.rank, 0)[2-id])))
	check(zero.CopyParamDevice(ctx, d.Optimizer, id, dst))
	return d.Get(dst.Address, dst.Len)
}

// moments returns the second moments that this rank holds.
func (d deviceRun) moments() []float32 {
	if d.tier == zero.TierHost {
		return moments(d.Optimizer)
	}
	var values []float32
	for _, view := range must(zero.ViewsDevice[float32](d.Optimizer, zero.SlotSecondMoment)) {
		values = append(values, d.Get(view.Data.Address, view.Data.Len)...)
	}
	return values
}

func moments(optimizer *zero.Optimizer) []float32 {
	var values []float32
	for _, view := range must(zero.Views[float32](optimizer, zero.SlotSecondMoment)) {
		values = append(values, view.Data...)
	}
	return values
}

func (d deviceRun) run(settings ...zero.Setting) []float32 {
	settings = append(settings, zero.Int(zero.KeyDevice, d.Device), zero.Int(zero.KeyTier, d.tier))
	d.Optimizer = newOptimizer(d.rank, zero.DTypeF32, settings...)
	defer d.Optimizer.Close()
	check(d.SetStream(d.Raw))
	d.begin()
	for step := 0; step < 3; step++ {
		d.give(step)
		must(d.Step(ctx))
	}
	values := params(d.Optimizer)
	for id := range shapes {
		values = append(values, d.whole(id)...)
	}
	return append(values, d.moments()...)
}

func hostRun(r rank, settings ...zero.Setting) []float32 {
	optimizer := newOptimizer(r, zero.DTypeF32, settings...)
	defer optimizer.Close()
	begin(r, optimizer)
	train(r, optimizer, 3)
	values := params(optimizer)
	return append(append(values, values...), moments(optimizer)...)
}

func TestMemoryOfADeviceTrainsWithTheBitsOfTheHost(t *testing.T) {
	needDevices(t)
	for stage := 0; stage <= 3; stage++ {
		for _, tier := range []zero.Tier{zero.TierHost, zero.TierDevice} {
			for _, gives := range []string{"given", "bulk", "host", "acquired"} {
				if gives == "acquired" && tier == zero.TierHost {
					continue
				}
				onRanks(t, 2, func(r rank) {
					stream := devices.NewStream(r.id)
					defer stream.Close()
					setting := zero.Int(zero.KeyStage, stage)
					got := deviceRun{rank: r, Stream: stream, manner: manner{tier, gives}}.run(setting)
					wantSlices(r, fmt.Sprint("stage ", stage, ", tier ", tier, ", ", gives), got, hostRun(r, setting))
				})
			}
		}
	}
}

func TestMemoryOfADeviceThatDoesNotFitIsRefused(t *testing.T) {
	needDevices(t)
	alone(t, func(r rank) {
		stream, other := devices.NewStream(0), devices.NewStream(1)
		defer stream.Close()
		defer other.Close()
		there := zero.DeviceSlice[float32]{Device: 1, Address: other.Alloc(30), Len: 30}
		refused := func(what string, err error, text string) {
			wantError(r, what, err, zero.ErrInvalidArgument)
			if err != nil && !strings.Contains(err.Error(), text) {
				r.Errorf("%s: got %v, want %q", what, err, text)
			}
		}
		host := newOptimizer(r, zero.DTypeF32)
		defer host.Close()
		refused("no device", zero.GiveGradDevice(ctx, host, 1, 0, there), "lies on CUDA device 1, but the optimizer has no KeyDevice")
		refused("no device", zero.CopyParamDevice(ctx, host, 1, there), "no KeyDevice")
		_, err := zero.AcquireDevice[float32](ctx, host, 1)
		wantError(r, "tier", err, zero.ErrUnsupported)
		check(host.SetStream(stream.Raw))
		begin := host.Begin(ctx, zero.SourceLocal)
		check(begin)
		_, err = host.Step(ctx)
		wantError(r, "a stream without a device", err, zero.ErrUnsupported)

		optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyDevice, 0), zero.Int(zero.KeyTier, zero.TierDevice))
		defer optimizer.Close()
		check(optimizer.Begin(ctx, zero.SourceLocal))
		refused("device", zero.GiveGradDevice(ctx, optimizer, 1, 0, there), "lies on CUDA device 1, but the optimizer has KeyDevice 0")
		claimed := zero.DeviceSlice[float32]{Device: 0, Address: there.Address, Len: 30}
		refused("claim", zero.GiveGradDevice(ctx, optimizer, 1, 0, claimed), "device 1")
		short := zero.DeviceSlice[float32]{Device: 0, Address: stream.Alloc(29), Len: 29}
		_, err = zero.NewGradientsDevice(optimizer, []int{1}, []zero.DeviceSlice[float32]{short})
		refused("length", err, "the gradient of parameter 1 has 30 elements, but the DeviceSlice has 29")
		refused("length", zero.CopyParamDevice(ctx, optimizer, 1, short), "29")
		refused("type", zero.GiveGradDevice(ctx, optimizer, 1, 0, zero.DeviceSlice[zero.BF16]{Len: 30}), "bf16")
		_, err = zero.Acquire[float32](ctx, optimizer, 1)
		wantError(r, "Acquire", err, zero.ErrUnsupported)
		_, _, err = zero.AcquireGrad[float32](ctx, optimizer, 1)
		wantError(r, "AcquireGrad", err, zero.ErrUnsupported)
		_, err = zero.Views[float32](optimizer, zero.SlotFirstMoment)
		wantError(r, "Views", err, zero.ErrUnsupported)
		check(optimizer.SetStream(other.Raw))
		_, err = optimizer.Step(ctx)
		wantError(r, "a stream of another device", err, zero.ErrInvalidArgument)
		optimizer.Close()
		wantError(r, "SetStream", optimizer.SetStream(0), zero.ErrBadHandle)
		var none *zero.Optimizer
		wantError(r, "SetStream", none.SetStream(0), zero.ErrBadHandle)
	})
}

func TestADeviceSliceIsCutAsASliceIs(t *testing.T) {
	whole := zero.DeviceSlice[float32]{Device: 1, Address: 4096, Len: 10}
	if part := whole.Slice(3, 7); part != (zero.DeviceSlice[float32]{Device: 1, Address: 4108, Len: 4}) {
		t.Errorf("got %v", part)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	whole.Slice(3, 11)
}
