package zero_test

import (
	"fmt"
	"runtime"
	"testing"

	zero "example.org/libzero/bindings/go"
)

var reversed = []int{2, 1, 0}

// slices returns gradients of this step and rank, the last parameter first.
func slices(r rank, step int) [][]float32 {
	return [][]float32{gradient(r, 2, step, 1), gradient(r, 1, step, 30), gradient(r, 0, step, 1200)}
}

func TestGradientsInOneCallHaveTheBitsOfSingleCalls(t *testing.T) {
	for stage := 0; stage <= 3; stage++ {
		want := trained(t, usualStep, zero.Int(zero.KeyStage, stage))
		prepared := make([]*zero.Gradients[float32], 2)
		memory := make([][][]float32, 2)
		got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
			if step == 0 {
				memory[r.id] = slices(r, step)
				prepared[r.id] = must(zero.NewGradients(optimizer, reversed, memory[r.id]))
			}
			for i, values := range slices(r, step) {
				copy(memory[r.id][i], values)
			}
			check(prepared[r.id].Ready(ctx))
			must(optimizer.Step(ctx))
		}, zero.Int(zero.KeyStage, stage))
		wantSlices(t, fmt.Sprintf("stage %d", stage), got, want)
	}
}

func TestAcquiredGradientsAreGivenInOneCall(t *testing.T) {
	want := trained(t, usualStep)
	for _, all := range []bool{true, false} {
		got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
			grads := slices(r, step)
			for i, id := range reversed {
				if all || id == 1 {
					grad, _, err := zero.AcquireGrad[float32](ctx, optimizer, id)
					check(err)
					copy(grad, grads[i])
					grads[i] = nil
				}
			}
			if all {
				grads = nil
			}
			check(must(zero.NewGradients(optimizer, reversed, grads)).Ready(ctx))
			must(optimizer.Step(ctx))
		})
		wantSlices(t, fmt.Sprintf("all acquired: %v", all), got, want)
	}
}

func TestGradientsKeepTheirMemory(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		want := slices(r, 0)
		grads := must(zero.NewGradients(optimizer, reversed, slices(r, 0)))
		for i := 0; i < 3; i++ {
			runtime.GC()
			for j := 0; j < 100; j++ {
				_ = make([]float32, 1200)
			}
		}
		check(grads.Ready(ctx))
		must(optimizer.Reduce(ctx))
		got := make([]float32, 1200)
		check(zero.ReadSlot(ctx, optimizer, 0, zero.SlotGrad, 0, got))
		wantSlices(r, "gradient", got, want[2])
	})
}

func TestGradientsAreCheckedWhereTheyAreMade(t *testing.T) {
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		begin(r, optimizer)
		refused := func(what string, ids []int, grads [][]float32, text string) {
			_, err := zero.NewGradients(optimizer, ids, grads)
			wantError(r, what, err, zero.ErrInvalidArgument)
			wantEqual(r, what, err.Error(), "libzero: ZERO_E_INVALID_ARGUMENT: "+text)
		}
		refused("length", []int{1}, [][]float32{make([]float32, 29)}, "the gradient of parameter 1 has 30 elements, but the slice holds 29")
		refused("number", []int{1}, [][]float32{}, "1 ids are given, but 0 gradients")
		_, err := zero.NewGradients(optimizer, []int{1}, [][]float64{nil})
		wantError(r, "element", err, zero.ErrInvalidArgument)

		check(must(zero.NewGradients[float32](optimizer, nil, nil)).Ready(ctx))
		unknown := must(zero.NewGradients(optimizer, []int{7}, [][]float32{{1}}))
		wantError(r, "unknown id", unknown.Ready(ctx), zero.ErrInvalidArgument)
		wantError(r, "not acquired", must(zero.NewGradients[float32](optimizer, []int{1}, nil)).Ready(ctx), zero.ErrState)
		grads := must(zero.NewGradients(optimizer, reversed, slices(r, 0)))
		check(grads.Ready(ctx))
		wantError(r, "twice", grads.Ready(ctx), zero.ErrState)
		check(optimizer.Close())
		wantError(r, "closed", grads.Ready(ctx), zero.ErrBadHandle)
	})
}
