package zerogorgonia_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	zero "example.org/libzero/bindings/go"
	zerogorgonia "example.org/libzero/bindings/go/gorgonia"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

var (
	ctx    = context.Background()
	groups atomic.Int64
)

// failure is how check ends a rank.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[V any](value V, err error) V {
	check(err)
	return value
}

// errorsOf runs body on goroutines as the ranks of a local group, and returns how each ended. A rank that fails ends the group.
func errorsOf(size int, body func(group *zero.Group, rank int)) []error {
	name := fmt.Sprintf("gorgonia.%d.%d", os.Getpid(), groups.Add(1))
	errs := make([]error, size)
	var running sync.WaitGroup
	for rank := 0; rank < size; rank++ {
		running.Add(1)
		go func(rank int) {
			defer running.Done()
			group, err := zero.CreateLocal(ctx, name, rank, size, nil)
			if err != nil {
				errs[rank] = err
				return
			}
			defer group.Close()
			defer func() {
				if reason, failed := recover().(failure); failed {
					errs[rank] = reason.error
					group.Abort(reason.Error())
				}
			}()
			body(group, rank)
		}(rank)
	}
	running.Wait()
	return errs
}

func onRanks(t *testing.T, size int, body func(group *zero.Group, rank int)) {
	t.Helper()
	for rank, err := range errorsOf(size, body) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// wantError tells where an error lacks some words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one with %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got the error %q, want %q in it", err, word)
		}
	}
}

// pair is a value with its gradient, as a node that a machine ran has them.
type pair struct {
	name        string
	value, grad gorgonia.Value
}

func (p *pair) Value() gorgonia.Value         { return p.value }
func (p *pair) Grad() (gorgonia.Value, error) { return p.grad, nil }
func (p *pair) Name() string                  { return p.name }

func dense(shape []int, elements any) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(elements))
}

// ramp returns first, first + step, ...
func ramp[T float32 | float64](count int, first, step T) []T {
	values := make([]T, count)
	for i := range values {
		values[i] = first + T(i)*step
	}
	return values
}

// model makes pairs of a float32 matrix, a float64 vector and two scalars, the same on all ranks; gradients follow with fill.
func model() []*pair {
	return []*pair{
		{"matrix", dense([]int{20, 30}, ramp[float32](600, -1, 0.01)), dense([]int{20, 30}, make([]float32, 600))},
		{"vector", dense([]int{7}, ramp(7, 0.25, 0.5)), dense([]int{7}, make([]float64, 7))},
		{"narrow", gorgonia.NewF32(0.5), gorgonia.NewF32(0)},
		{"wide", gorgonia.NewF64(-0.5), gorgonia.NewF64(0)},
	}
}

func valueGrads(pairs []*pair) []gorgonia.ValueGrad {
	made := make([]gorgonia.ValueGrad, len(pairs))
	for i, p := range pairs {
		made[i] = p
	}
	return made
}

// fill sets the gradients to numbers that depend on rank, step and place, all of them multiples of 1/64, whose sums are exact.
func fill(pairs []*pair, rank, step int) {
	number := func(place int) float64 { return float64((place*7+rank*5+step*3)%32-15) / 64 }
	for i, p := range pairs {
		switch grad := p.grad.(type) {
		case *gorgonia.F32:
			*grad = gorgonia.F32(number(i))
		case *gorgonia.F64:
			*grad = gorgonia.F64(number(i))
		case *tensor.Dense:
			for place := 0; place < grad.Shape().TotalSize(); place++ {
				if grad.Dtype() == tensor.Float32 {
					grad.Float32s()[place] = float32(number(place))
				} else {
					grad.Float64s()[place] = number(place)
				}
			}
		}
	}
}

// numbers returns all values of a model end to end.
func numbers(pairs []*pair) (all []float64) {
	for _, p := range pairs {
		all = append(all, numbersOf(p.value)...)
	}
	return all
}

func numbersOf(value gorgonia.Value) (all []float64) {
	switch value := value.(type) {
	case *gorgonia.F32:
		return []float64{float64(*value)}
	case *gorgonia.F64:
		return []float64{float64(*value)}
	case *tensor.Dense:
		if value.Dtype() == tensor.Float64 {
			return append(all, value.Float64s()...)
		}
		for _, element := range value.Float32s() {
			all = append(all, float64(element))
		}
	}
	return all
}

// wantClose compares numbers; a tolerance of 0 means bits.
func wantClose(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Errorf("%s: got %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if difference := math.Abs(got[i] - want[i]); !(difference <= tolerance) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// newSolver makes one that is closed with its test.
func newSolver(t *testing.T, group *zero.Group, settings ...zero.Setting) *zerogorgonia.Solver {
	solver := must(zerogorgonia.NewSolver(ctx, group, settings...))
	t.Cleanup(func() { _ = solver.Close() })
	return solver
}
