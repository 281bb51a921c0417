package zerogorgonia_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// trained makes steps of a model on so many ranks, and returns its numbers on rank 0. All ranks end with the same.
func trained(t *testing.T, ranks, steps int, settings ...zero.Setting) []float64 {
	ends := make([][]float64, ranks)
	onRanks(t, ranks, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group, settings...)
		for step := 1; step <= steps; step++ {
			fill(pairs, rank, step)
			check(solver.Step(valueGrads(pairs)))
		}
		ends[rank] = numbers(pairs)
	})
	for rank := range ends {
		wantClose(t, fmt.Sprint("rank ", rank), ends[rank], ends[0], 0)
	}
	return ends[0]
}

// averaged makes the same steps with a solver of Gorgonia, on the means of the ranks' gradients.
func averaged(solver gorgonia.Solver, ranks, steps int) []float64 {
	pairs := model()
	for step := 1; step <= steps; step++ {
		means := model()
		for i, p := range pairs {
			sums := make([]float64, len(numbersOf(p.grad)))
			for rank := 0; rank < ranks; rank++ {
				fill(means, rank, step)
				for place, number := range numbersOf(means[i].grad) {
					sums[place] += number / float64(ranks)
				}
			}
			set(p.grad, sums)
		}
		check(solver.Step(valueGrads(pairs)))
	}
	return numbers(pairs)
}

func set(value gorgonia.Value, numbers []float64) {
	switch value := value.(type) {
	case *gorgonia.F32:
		*value = gorgonia.F32(numbers[0])
	case *gorgonia.F64:
		*value = gorgonia.F64(numbers[0])
	case *tensor.Dense:
		for place, number := range numbers {
			if value.Dtype() == tensor.Float64 {
				value.Float64s()[place] = number
			} else {
				value.Float32s()[place] = float32(number)
			}
		}
	}
}

// Gorgonia's solvers are the reference: for tensors and scalars, of float32 and float64. Values are below 8, so that an fp32 rounding is at
// most 2.4e-7; a step makes a few.
func TestStepsAreThoseOfGorgoniasSolvers(t *testing.T) {
	const steps, tolerance = 20, 2e-5
	for _, ranks := range []int{1, 2, 3} {
		wantClose(t, "adam", trained(t, ranks, steps, zero.Text(zero.KeyAlgorithm, "adam"), zero.Float(zero.KeyLR, 0.01)),
			averaged(gorgonia.NewAdamSolver(gorgonia.WithLearnRate(0.01)), ranks, steps), tolerance)
		wantClose(t, "sgd", trained(t, ranks, steps, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 0.1)),
			averaged(gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(0.1)), ranks, steps), tolerance)
	}
}

func TestStagesHaveTheSameBits(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		first := trained(t, ranks, 7, zero.Int(zero.KeyStage, 0))
		for stage := 1; stage <= 3; stage++ {
			wantClose(t, fmt.Sprintf("stage %d of %d ranks", stage, ranks), trained(t, ranks, 7, zero.Int(zero.KeyStage, stage)), first, 0)
		}
		wantClose(t, "the stage of NewSolver", trained(t, ranks, 7), first, 0)
	}
}

func TestEveryAlgorithmIsThereByName(t *testing.T) {
	before := numbers(model())
	seen := make(map[string]string)
	for _, name := range []string{"adam", "adamw", "sgd", "adagrad", "lion", "lamb"} {
		after := trained(t, 2, 3, zero.Text(zero.KeyAlgorithm, name), zero.Float(zero.KeyLR, 0.01), zero.Float(zero.KeyWeightDecay, 0.1))
		if text := fmt.Sprint(after); seen[text] != "" || text == fmt.Sprint(before) {
			t.Errorf("%s ends where %s does, or where it began", name, seen[text])
		} else {
			seen[text] = name
		}
	}
	onRanks(t, 2, func(group *zero.Group, rank int) { // of matrices only
		pairs := model()[:1]
		fill(pairs, rank, 1)
		check(newSolver(t, group, zero.Text(zero.KeyAlgorithm, "muon"), zero.Float(zero.KeyLR, 0.01)).Step(valueGrads(pairs)))
	})
	onRanks(t, 1, func(group *zero.Group, rank int) {
		_, err := newSolverOf(group, zero.Text(zero.KeyAlgorithm, "adamx"))
		wantError(t, err, "adamx")
	})
}

func TestARateThatChangesCountsFromTheNextStepOn(t *testing.T) {
	onRanks(t, 2, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 0.5))
		fill(pairs, 0, 1)
		check(solver.Step(valueGrads(pairs)))
		before := numbers(pairs)
		check(solver.Optimizer().SetF64(0, zero.KeyLR, 0))
		fill(pairs, 0, 2)
		check(solver.Step(valueGrads(pairs)))
		wantClose(t, "values", numbers(pairs), before, 0)
	})
}

func TestGradientsAreZeroAfterAStep(t *testing.T) {
	onRanks(t, 2, func(group *zero.Group, rank int) {
		pairs := model()
		fill(pairs, rank, 1)
		check(newSolver(t, group).Step(valueGrads(pairs)))
		for _, p := range pairs {
			grad := numbersOf(p.grad)
			wantClose(t, p.name, grad, make([]float64, len(grad)), 0)
		}
	})
}

func TestAStepThatIsSkippedLeavesValuesAndZeroesGradients(t *testing.T) {
	onRanks(t, 2, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group)
		before := numbers(pairs)
		fill(pairs, rank, 1)
		if rank == 1 {
			pairs[0].grad.(*tensor.Dense).Float32s()[5] = float32(math.Inf(1))
		}
		check(solver.Step(valueGrads(pairs)))
		if result := solver.Result(); !result.Skipped || result.SkippedTotal != 1 {
			t.Errorf("rank %d: got %+v, want a skipped step", rank, result)
		}
		wantClose(t, "values", numbers(pairs), before, 0)
		wantClose(t, "gradient", numbersOf(pairs[0].grad)[5:6], []float64{0}, 0)
	})
}

// A gradient may be a view, as that of a transposed matrix is.
func TestAGradientMayBeAView(t *testing.T) {
	onRanks(t, 1, func(group *zero.Group, rank int) {
		value := dense([]int{2, 3}, make([]float32, 6))
		view := dense([]int{3, 2}, ramp[float32](6, 1, 1))
		check(view.T())
		solver := newSolver(t, group, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 1))
		check(solver.Step(valueGrads([]*pair{{"w", value, view}})))
		wantClose(t, "w", numbersOf(value), []float64{-1, -3, -5, -2, -4, -6}, 0)
		wantClose(t, "gradient", numbersOf(view), make([]float64, 6), 0)
	})
}

func TestBeginGivesAllRanksTheValuesOfRankZero(t *testing.T) {
	onRanks(t, 3, func(group *zero.Group, rank int) {
		pairs, zeroth := model(), model()
		for _, p := range pairs {
			set(p.value, make([]float64, len(numbersOf(p.value)))) // other values than rank 0 has
		}
		if rank == 0 {
			pairs = zeroth
		}
		solver := newSolver(t, group)
		check(solver.Begin(valueGrads(pairs)))
		wantClose(t, "values", numbers(pairs), numbers(model()), 0)
		wantError(t, solver.Begin(valueGrads(pairs)), "once")
	})
}

func TestARunThatWasSavedGoesOnInAnotherStageWithOtherRanks(t *testing.T) {
	folder := t.TempDir()
	const half = 4
	same := func(pairs []*pair, step int) { fill(pairs, 0, step) } // all ranks have the same gradient, so that their number changes no bits
	var saved []float64
	onRanks(t, 2, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group)
		if found := must(solver.Resume(folder, valueGrads(pairs))); found {
			t.Error("a save was found where there is none")
		}
		check(solver.Begin(valueGrads(pairs)))
		for step := 1; step <= 2*half; step++ {
			same(pairs, step)
			check(solver.Step(valueGrads(pairs)))
			if step == half {
				check(solver.Save(folder))
			}
		}
		if rank == 0 {
			saved = numbers(pairs)
		}
	})
	onRanks(t, 4, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group, zero.Int(zero.KeyStage, 1))
		if found := must(solver.Resume(folder, valueGrads(pairs))); !found {
			t.Error("the save was not found")
		}
		for step := half + 1; step <= 2*half; step++ {
			same(pairs, step)
			check(solver.Step(valueGrads(pairs)))
		}
		wantClose(t, "values", numbers(pairs), saved, 0)
	})
}

func TestTheStageIsThreeUnlessASettingSaysOtherwise(t *testing.T) {
	onRanks(t, 1, func(group *zero.Group, rank int) {
		for want, settings := range map[string][]zero.Setting{"stage 3": nil, "stage 1": {zero.Int(zero.KeyStage, 1)}} {
			pairs := model()
			solver := newSolver(t, group, settings...)
			check(solver.Step(valueGrads(pairs)))
			if told := must(solver.Optimizer().Describe()); !strings.Contains(told, want) {
				t.Errorf("got %q, want %q in it", told, want)
			}
		}
	})
}

func TestRanksCountByTheirWeights(t *testing.T) {
	onRanks(t, 2, func(group *zero.Group, rank int) {
		p := &pair{"w", dense([]int{2}, []float32{0, 0}), dense([]int{2}, []float32{float32(rank), 4})}
		solver := newSolver(t, group, zero.Text(zero.KeyAlgorithm, "sgd"), zero.Float(zero.KeyLR, 1),
			zero.Int(zero.KeyDivisor, zero.DivisorWeights))
		check(solver.Begin(valueGrads([]*pair{p})))
		check(solver.Optimizer().SetWeight(float64(1 + 2*rank))) // 1 and 3 samples
		check(solver.Step(valueGrads([]*pair{p})))
		wantClose(t, "w", numbersOf(p.value), []float64{-0.75, -4}, 0)
	})
}
