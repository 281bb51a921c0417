package zero_test

import (
	"fmt"
	"math"
	"testing"

	zero "example.org/libzero/bindings/go"
)

func TestStagesAgreeBitForBit(t *testing.T) {
	want := trained(t, usualStep, zero.Int(zero.KeyStage, 0))
	if want[0] == 1 {
		t.Fatal("nothing was learnt")
	}
	for stage := 1; stage <= 3; stage++ {
		wantSlices(t, fmt.Sprintf("stage %d", stage), trained(t, usualStep, zero.Int(zero.KeyStage, stage)), want)
	}
}

func TestGradientsOfTheProgramsMemoryAreTheSame(t *testing.T) {
	want := trained(t, usualStep)
	got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
		first := gradient(r, 0, step, 1200)
		check(zero.GiveGrad(ctx, optimizer, 0, 600, first[600:]))
		check(zero.GiveGrad(ctx, optimizer, 0, 0, first[:600]))
		check(zero.GiveGrad(ctx, optimizer, 0, 0, first[:0]))
		check(zero.GiveGrad(ctx, optimizer, 1, 0, gradient(r, 1, step, 30)))
		grad, _, err := zero.AcquireGrad[float32](ctx, optimizer, 2)
		check(err)
		copy(grad, gradient(r, 2, step, 1))
		check(optimizer.GradRangeReady(ctx, 2, 0, 1))
		must(optimizer.Step(ctx))
	})
	wantSlices(t, "parameters", got, want)
}

func TestTheSplitStepIsTheStep(t *testing.T) {
	want := trained(t, usualStep)
	got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
		giveGradients(r, optimizer, step)
		must(optimizer.Reduce(ctx))
		check(optimizer.Apply(ctx))
		check(optimizer.Gather(ctx))
	})
	wantSlices(t, "parameters", got, want)
}

func TestMicroStepsAddUp(t *testing.T) {
	twice := func(kind zero.MicroStep) []float32 {
		return trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
			check(optimizer.MicroStep(ctx, kind))
			giveGradients(r, optimizer, step)
			check(optimizer.MicroStep(ctx, zero.MicroStepLast))
			giveGradients(r, optimizer, step+100)
			must(optimizer.Step(ctx))
		}, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 1))
	}
	for _, kind := range []zero.MicroStep{zero.MicroStepLocal, zero.MicroStepReduce} {
		got := twice(kind)
		for i := 0; i < 1200; i++ {
			want := float64(i + 1)
			for step := 0; step < 3; step++ {
				for _, part := range []int{0, 100} {
					for id := 0; id < 2; id++ {
						want -= math.Sin(float64(7*i+29*(step+part)+41*id)) / 2
					}
				}
			}
			if math.Abs(float64(got[i])-want) > 1e-3 {
				t.Fatalf("%v: element %d is %v, want %v", kind, i, got[i], want)
			}
		}
	}
}

func TestWeightsDecideHowMuchARankCounts(t *testing.T) {
	weighted := func(weight func(id int) float64) []float32 {
		return trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
			check(optimizer.SetWeight(weight(r.id)))
			giveGradients(r, optimizer, step)
			must(optimizer.Step(ctx))
		}, zero.Int(zero.KeyDivisor, zero.DivisorWeights))
	}
	wantSlices(t, "equal weights", weighted(func(int) float64 { return 1 }), trained(t, usualStep))
	alone := weighted(func(id int) float64 { return float64(1 - id) })
	got := trained(t, func(_ rank, optimizer *zero.Optimizer, step int) {
		giveGradients(rank{}, optimizer, step) // those of rank 0, on both
		must(optimizer.Step(ctx))
	})
	wantSlices(t, "a rank without weight", alone, got)
}

func TestCustomAlgorithmsWorkOnViews(t *testing.T) {
	custom := []zero.Setting{zero.Text(zero.KeyAlgorithm, "custom"), zero.Int(zero.KeyCustomSlots, 2)}
	got := trained(t, func(r rank, optimizer *zero.Optimizer, step int) {
		giveGradients(r, optimizer, step)
		must(optimizer.Reduce(ctx))
		grads := must(zero.Views[float32](optimizer, zero.SlotGrad))
		params := must(zero.Views[float32](optimizer, zero.SlotParam))
		counts := must(zero.Views[float32](optimizer, zero.SlotCustom+1))
		wantEqual(r, "views", len(params), must(optimizer.ViewCount()))
		for v, view := range params {
			wantEqual(r, "parameter", grads[v].Param, view.Param)
			wantEqual(r, "offset", grads[v].Offset, view.Offset)
			for i := range view.Data {
				view.Data[i] -= 0.5 * grads[v].Data[i]
				counts[v].Data[i]++
			}
		}
		check(optimizer.Gather(ctx))
		counted := make([]float32, 30)
		check(zero.ReadSlot(ctx, optimizer, 1, zero.SlotCustom+1, 0, counted))
		wantEqual(r, "steps counted", counted[29], float32(step+1))
	}, custom...)
	want := trained(t, usualStep, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 0.5))
	wantSlices(t, "sgd by hand", got, want)
}

func TestViewsCoverEveryParameterOnce(t *testing.T) {
	seen := make([]map[int]int, 2)
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		seen[r.id] = map[int]int{}
		for _, view := range must(zero.Views[float32](optimizer, zero.SlotParam)) {
			for i, value := range view.Data {
				wantEqual(r, "value", value, float32(view.Offset+i+1))
				seen[r.id][10000*view.Param+view.Offset+i]++
			}
		}
		_, err := zero.ViewAt[float32](optimizer, -1, zero.SlotParam)
		wantError(r, "index", err, zero.ErrInvalidArgument)
		_, err = zero.Views[float32](optimizer, zero.SlotMaster)
		wantError(r, "slot", err, zero.ErrUnsupported)
		_, err = zero.Views[float64](optimizer, zero.SlotParam)
		wantError(r, "element type", err, zero.ErrInvalidArgument)
	})
	wantEqual(t, "elements", len(seen[0])+len(seen[1]), 1231)
}

func TestParametersAreCopiedIntoTheProgramsMemory(t *testing.T) {
	for stage := 0; stage <= 3; stage++ {
		onRanks(t, 2, func(r rank) {
			optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyStage, stage))
			defer optimizer.Close()
			begin(r, optimizer)
			values := make([]float32, 1200)
			check(zero.CopyParam(ctx, optimizer, 0, values))
			wantSlices(r, "copy", values, ramp[float32](1200, 1))
			wantError(r, "nothing to release", optimizer.Release(0), zero.ErrState)
			wantError(r, "length", zero.CopyParam(ctx, optimizer, 0, values[:7]), zero.ErrInvalidArgument)
			wantError(r, "no memory", zero.CopyParam[float32](ctx, optimizer, 0, nil), zero.ErrInvalidArgument)
		})
	}
}

func TestANonfiniteGradientSkipsTheStepOnAllRanks(t *testing.T) {
	onRanks(t, 2, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32, zero.Int(zero.KeyGradNorm, 1))
		defer optimizer.Close()
		begin(r, optimizer)
		if r.id == 1 {
			bad := make([]float32, 30)
			bad[7] = float32(math.Inf(1))
			check(zero.GiveGrad(ctx, optimizer, 1, 0, bad))
		}
		result := must(optimizer.Step(ctx))
		unfilled := []int{1231, 1201}[r.id]
		wantEqual(r, "result", result, zero.StepResult{Skipped: true, SkippedTotal: 1, Unfilled: unfilled, GradNorm: result.GradNorm, LossScale: 1})
		result = train(r, optimizer, 1)
		if result.Step != 1 || result.Skipped || result.SkippedTotal != 1 || result.Unfilled != 0 || result.GradNorm <= 0 {
			t.Errorf("got %+v", result)
		}
	})
}
