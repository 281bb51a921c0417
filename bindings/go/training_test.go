package zero_test

import (
	"fmt"
	"math"
	"testing"

	zero "example.org/libzero/bindings/go"
)

var shapes = [][]int{{40, 30}, {30}, {}}

// newOptimizer makes an optimizer with three parameters, sealed.
func newOptimizer(r rank, dtype zero.DType, settings ...zero.Setting) *zero.Optimizer {
	config := must(zero.NewConfig(append([]zero.Setting{zero.Int(zero.KeyBucketBytes, 1024)}, settings...)...))
	defer config.Close()
	optimizer := must(zero.NewOptimizer(r.Group, config))
	for id, shape := range shapes {
		wantEqual(r, "id", must(optimizer.AddParam(fmt.Sprintf("p%d", id), dtype, shape, nil)), id)
	}
	check(optimizer.Seal(ctx))
	return optimizer
}

// begin gives the first values 1, 2, 3 ... of rank 0.
func begin(r rank, optimizer *zero.Optimizer) {
	for id := range shapes {
		if r.id == 0 {
			param := must(zero.Acquire[float32](ctx, optimizer, id))
			copy(param, ramp[float32](len(param), 1))
			check(optimizer.Release(id))
		}
	}
	check(optimizer.Begin(ctx, zero.SourceRoot))
}

// giveGradients gives gradients of this step and rank through libzero's memory.
func giveGradients(r rank, optimizer *zero.Optimizer, step int) {
	for id := len(shapes) - 1; id >= 0; id-- {
		grad, add, err := zero.AcquireGrad[float32](ctx, optimizer, id)
		check(err)
		for i, value := range gradient(r, id, step, len(grad)) {
			if add {
				value += grad[i]
			}
			grad[i] = value
		}
		check(optimizer.GradReady(ctx, id))
	}
}

func gradient(r rank, id, step, count int) []float32 {
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(math.Sin(float64(7*i + 13*id + 29*step + 41*r.id)))
	}
	return values
}

func train(r rank, optimizer *zero.Optimizer, steps int) (last zero.StepResult) {
	for step := 0; step < steps; step++ {
		giveGradients(r, optimizer, step)
		last = must(optimizer.Step(ctx))
	}
	return last
}

// params returns all values, read by range.
func params(optimizer *zero.Optimizer) []float32 {
	values := make([]float32, 1231)
	check(zero.ReadSlot(ctx, optimizer, 0, zero.SlotParam, 0, values[:1200]))
	check(zero.ReadSlot(ctx, optimizer, 1, zero.SlotParam, 0, values[1200:1230]))
	check(zero.ReadSlot(ctx, optimizer, 2, zero.SlotParam, 0, values[1230:]))
	return values
}

// trained returns what three steps make on two ranks, in a world of its own.
func trained(t *testing.T, step func(r rank, optimizer *zero.Optimizer, step int), settings ...zero.Setting) []float32 {
	var result []float32
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32, settings...)
		defer optimizer.Close()
		begin(r, optimizer)
		for s := 0; s < 3; s++ {
			step(r, optimizer, s)
		}
		if values := params(optimizer); r.id == 0 {
			result = values
		}
	})
	return result
}

func usualStep(r rank, optimizer *zero.Optimizer, step int) {
	giveGradients(r, optimizer, step)
	must(optimizer.Step(ctx))
}
