package zerogorgonia_test

import (
	"testing"

	zero "example.org/libzero/bindings/go"
	zerogorgonia "example.org/libzero/bindings/go/gorgonia"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func newSolverOf(group *zero.Group, settings ...zero.Setting) (*zerogorgonia.Solver, error) {
	return zerogorgonia.NewSolver(ctx, group, settings...)
}

func TestAnOtherOrderOnARankIsAnErrorThatNamesTheFirstDifference(t *testing.T) {
	for _, err := range errorsOf(2, func(group *zero.Group, rank int) {
		pairs := model()
		if rank == 1 {
			pairs[1], pairs[2] = pairs[2], pairs[1]
		}
		check(newSolver(t, group).Step(valueGrads(pairs)))
	}) {
		wantError(t, err, "rank", "vector", "narrow")
	}
}

func TestRanksThatBeginWithOtherValuesAreTold(t *testing.T) {
	for _, err := range errorsOf(2, func(group *zero.Group, rank int) {
		pairs := model()
		if rank == 1 {
			pairs[0].value.(*tensor.Dense).Float32s()[17] = 3
		}
		check(newSolver(t, group).Step(valueGrads(pairs)))
	}) {
		wantError(t, err, "matrix")
	}
}

func TestAModelThatChangesIsAnErrorThatNamesTheNode(t *testing.T) {
	onRanks(t, 1, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group)
		check(solver.Step(valueGrads(pairs)))
		wantError(t, solver.Step(valueGrads(pairs[:3])), "3 nodes", "4")
		pairs[0], pairs[2] = pairs[2], pairs[0]
		wantError(t, solver.Step(valueGrads(pairs)), `node 0 is "narrow"`, `was "matrix"`)
		pairs[0], pairs[2] = pairs[2], pairs[0]
		check(solver.Step(valueGrads(pairs)))
		_, err := solver.Resume(t.TempDir(), valueGrads(pairs))
		wantError(t, err, "before")
	})
}

func TestNodesThatCannotBeTrainedAreNamed(t *testing.T) {
	good := dense([]int{2, 2}, ramp[float32](4, 0, 1))
	slice := func() *tensor.Dense {
		return must(dense([]int{3, 4}, ramp[float32](12, 0, 1)).Slice(nil, gorgonia.S(1, 3))).(*tensor.Dense)
	}
	columns := tensor.New(tensor.WithShape(2, 2), tensor.AsFortran(ramp[float32](4, 0, 1)))
	for _, c := range []struct {
		node  pair
		words []string
	}{
		{pair{"w", nil, good}, []string{"node 0", `"w"`, "no value"}},
		{pair{"w", good, nil}, []string{`gradient of node "w"`, "missing"}},
		{pair{"w", gorgonia.NewI(1), gorgonia.NewI(1)}, []string{`"w"`, "*gorgonia.I"}},
		{pair{"w", dense([]int{2}, []int{1, 2}), good}, []string{`"w"`, "is int"}},
		{pair{"w", columns, good}, []string{`"w"`, "column after column"}},
		{pair{"w", slice(), good}, []string{`"w"`, "end to end", "Materialize"}},
		{pair{"w", good, dense([]int{3}, ramp[float32](3, 0, 1))}, []string{`gradient of node "w"`, "3 elements", "4 of float32"}},
		{pair{"w", good, dense([]int{4}, ramp(4, 0.0, 1.0))}, []string{`gradient of node "w"`, "of float64", "of float32"}},
	} {
		onRanks(t, 1, func(group *zero.Group, rank int) {
			node := c.node
			wantError(t, newSolver(t, group).Step(valueGrads([]*pair{&node})), c.words...)
		})
	}
	onRanks(t, 1, func(group *zero.Group, rank int) {
		twice := []*pair{{"w", good, good}, {"v", good, good}, {"w", good, good}}
		wantError(t, newSolver(t, group).Step(valueGrads(twice)), "nodes 0 and 2", `"w"`, "WithName")
	})
}

func TestAClosedSolverIsAnError(t *testing.T) {
	onRanks(t, 1, func(group *zero.Group, rank int) {
		pairs := model()
		solver := newSolver(t, group)
		check(solver.Step(valueGrads(pairs)))
		check(solver.Close())
		check(solver.Close())
		wantError(t, solver.Step(valueGrads(pairs)), "ZERO_E_BAD_HANDLE")
	})
}
