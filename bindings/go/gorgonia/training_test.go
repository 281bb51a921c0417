package zerogorgonia_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/gorgonia/internal/classifier"
	"gorgonia.org/gorgonia"
)

const (
	points = 64
	steps  = 200
	rate   = 0.002
)

// lossesOfAdam trains alone with Gorgonia's Adam.
func lossesOfAdam() (losses []float64) {
	m := must(classifier.NewModel(points, 1))
	solver := gorgonia.NewAdamSolver(gorgonia.WithLearnRate(rate))
	for step := 1; step <= steps; step++ {
		losses = append(losses, float64(must(m.Run(classifier.NewBatch(step, points)))))
		check(solver.Step(m.Params))
	}
	return losses
}

// lossesOfRanks trains on equal parts of the same batches, and returns the means of the ranks' losses.
func lossesOfRanks(t *testing.T, ranks, stage int) []float64 {
	losses := make([]float64, steps)
	var adding sync.Mutex
	onRanks(t, ranks, func(group *zero.Group, rank int) {
		m := must(classifier.NewModel(points/ranks, int64(1+rank))) // rank 0 has the values of lossesOfAdam
		solver := newSolver(t, group, zero.Int(zero.KeyStage, stage), zero.Text(zero.KeyAlgorithm, "adam"), zero.Float(zero.KeyLR, rate))
		check(solver.Begin(m.Params))
		for step := 1; step <= steps; step++ {
			loss := float64(must(m.Run(classifier.NewBatch(step, points).Part(rank, ranks))))
			check(solver.Step(m.Params))
			adding.Lock()
			losses[step-1] += loss / float64(ranks)
			adding.Unlock()
		}
	})
	return losses
}

// The mean gradient of two halves is that of the whole batch but for fp32 rounding: sums of 64 terms in another order, 6e-8 of a term each. Adam
// divides by the size of a gradient, which enlarges a rounding where the gradient is almost zero, and 200 steps add these up.
func TestTwoRanksHaveTheLossesOfGorgoniasAdamOverTheJoinedBatch(t *testing.T) {
	const tolerance = 2e-5 // of losses that fall from 2.5 to 0.4; 4e-6 was seen
	want := lossesOfAdam()
	if first, last := want[0], want[steps-1]; !(last < first/4) {
		t.Fatalf("the loss went from %v to %v only", first, last)
	}
	for stage := 0; stage <= 3; stage++ {
		got := lossesOfRanks(t, 2, stage)
		wantClose(t, fmt.Sprint("losses of stage ", stage), got, want, tolerance)
		t.Logf("stage %d: the largest difference is %.1e", stage, furthest(got, want))
	}
}

func furthest(got, want []float64) (most float64) {
	for i := range got {
		most = math.Max(most, math.Abs(got[i]-want[i]))
	}
	return most
}
