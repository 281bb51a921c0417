package zerogorgonia_test

import (
	"fmt"
	"testing"

	zero "example.org/libzero/bindings/go"
)

const (
	layers = 64
	side   = 256
	count  = layers * side * side
)

// The table of the README: bytes of rank 0, of 64 matrices of 256 x 256 in float32. Gorgonia's values and gradients stay whole in every stage.
func TestBytesPerRank(t *testing.T) {
	t.Log("| | Gorgonia's values and gradients | parameters | gradients | states | pools | staging | all |")
	t.Logf("| Gorgonia's Adam | %d | | | %d | | | %d |", 8*count, 8*count, 16*count)
	for _, ranks := range []int{2, 4, 8} {
		for stage := 0; stage <= 3; stage++ {
			onRanks(t, ranks, func(group *zero.Group, rank int) {
				solver := newSolver(t, group, zero.Int(zero.KeyStage, stage))
				pairs := make([]*pair, layers)
				for i := range pairs {
					pairs[i] = &pair{fmt.Sprint("w", i), dense([]int{side, side}, make([]float32, side*side)), dense([]int{side, side}, make([]float32, side*side))}
				}
				for step := 1; step <= 2; step++ {
					check(solver.Step(valueGrads(pairs)))
				}
				if rank == 0 {
					wantShares(t, solver.Optimizer(), ranks, stage)
				}
			})
		}
	}
}

func wantShares(t *testing.T, optimizer *zero.Optimizer, ranks, stage int) {
	bytes := func(category zero.Memory) zero.MemoryStats { return must(optimizer.Memory(category)) }
	param, grad, state := bytes(zero.MemoryParam).Now, bytes(zero.MemoryGrad).Now, bytes(zero.MemoryState).Now
	pools, staging := bytes(zero.MemoryParamPool).Peak+bytes(zero.MemoryGradPool).Peak, bytes(zero.MemoryStaging).Now
	t.Logf("| %d ranks, stage %d | %d | %d | %d | %d | %d | %d | %d |", ranks, stage, 8*count, param, grad, state, pools, staging,
		8*count+param+grad+state+pools+staging)
	wantShare(t, "states", stage >= 1, ranks, state, 8*count)
	wantShare(t, "gradients", stage >= 2, ranks, grad, 4*count)
	wantShare(t, "parameters", stage >= 3, ranks, param, 4*count)
}

// wantShare compares bytes with a whole or an equal share, give or take what padding adds.
func wantShare(t *testing.T, what string, sharded bool, ranks, got, whole int) {
	t.Helper()
	if sharded {
		whole /= ranks
	}
	if slack := 32 << 10; got < whole || got > whole+slack {
		t.Errorf("%d ranks keep %d bytes of %s, want about %d", ranks, got, what, whole)
	}
}
