package zero

import (
	"context"
	"fmt"
	"runtime"

	"example.org/libzero/bindings/go/internal/czero"
)

// Gradients are gradients of several parameters that become ready in one call, made and checked once for many steps: a step of 1,000
// parameters then takes one call into libzero in place of 1,000.
type Gradients[T Element] struct {
	optimizer *Optimizer
	ids       []int64
	grads     [][]T     // keeps the memory that places names
	places    []uintptr // of the first elements; 0 where the acquired gradient is meant
}

// NewGradients names parameters and their gradients in the program's memory, as many elements as the parameter has: grads[i] is that of
// ids[i], or nil for the gradient that was acquired with AcquireGrad. Nil grads: all are acquired. Every Ready reads the elements anew; the
// slices themselves are kept, so that memory which append or make puts in their place is not seen.
//
//go:noinline
func NewGradients[T Element](o *Optimizer, ids []int, grads [][]T) (*Gradients[T], error) {
	if grads != nil && len(grads) != len(ids) {
		return nil, invalid("%d ids are given, but %d gradients", len(ids), len(grads))
	}
	// What is not inlined returns memory of the heap, and so slices of the heap, which do not move.
	made := &Gradients[T]{o, toInt64s(ids), make([][]T, len(ids)), make([]uintptr, len(ids))}
	for i, id := range ids {
		param, what := o.param(id), "the gradient of parameter"
		if err := checkElement[T](what, id, param.grad); err != nil {
			return nil, err
		}
		if grads == nil || grads[i] == nil {
			continue
		}
		if given := len(grads[i]); given != param.count && param.grad != 0 {
			return nil, invalid("%s has %d elements, but the slice holds %d", fmt.Sprint(what, " ", id), param.count, given)
		}
		made.grads[i] = grads[i]
		made.places[i] = uintptr(addressOf(grads[i]))
	}
	return made, nil
}

// Ready says that all these gradients are final for this step, in their order: GradReady or GiveGrad for each. Where it fails at one, those
// before it are ready. It may wait for reductions under way.
func (g *Gradients[T]) Ready(ctx context.Context) error {
	defer runtime.KeepAlive(g)
	if len(g.ids) == 0 {
		return nil
	}
	return g.optimizer.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_grads_ready(raw, &g.ids[0], int64(len(g.ids)), &g.places[0], g.optimizer.onStream())
	})
}
