package zero

import (
	"context"
	"fmt"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// MicroStep is what becomes of the gradients of a part of a step's batch.
type MicroStep int32

// Kinds of micro-steps.
const (
	MicroStepLast   = MicroStep(czero.ZERO_MICRO_STEP_LAST)   // reduced, with what local ones left, as they become ready; Step follows
	MicroStepLocal  = MicroStep(czero.ZERO_MICRO_STEP_LOCAL)  // added up on this rank
	MicroStepReduce = MicroStep(czero.ZERO_MICRO_STEP_REDUCE) // reduced as they become ready, and added up by their owners
)

// String returns its name, for example "local".
func (m MicroStep) String() string { return nameOf("ZERO_MICRO_STEP_", int64(m)) }

// MicroStep begins a micro-step. A step of one micro-step needs no call. A collective.
func (o *Optimizer) MicroStep(ctx context.Context, kind MicroStep) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_micro_step(raw, int32(kind), o.onStream())
	})
}

// SetWeight sets this rank's weight of the step under way, with DivisorWeights: for example the samples in its batch, 0 when it has none.
// Before the first gradient of a step, or behind MicroStep, of that micro-step; 1 again after each.
func (o *Optimizer) SetWeight(weight float64) error {
	return o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_set_weight(raw, weight) })
}

// AcquireGrad returns libzero's memory for a parameter's gradient, valid until all of it was given to GradReady, and whether to add to what
// is there (true) or to overwrite it. Acquired again before it is ready, it says true also when nothing was written. It may wait for
// reductions under way.
func AcquireGrad[T Element](ctx context.Context, o *Optimizer, id int) (grad []T, add bool, err error) {
	param := o.param(id)
	if err := o.checkLends(false); err != nil {
		return nil, false, err
	}
	if err := checkElement[T]("the gradient of parameter", id, param.grad); err != nil {
		return nil, false, err
	}
	address, add, err := o.acquireGrad(ctx, id)
	if err != nil {
		return nil, false, err
	}
	return sliceOf[T](address, param.count), add, nil
}

// acquireGrad returns the address of a gradient in libzero's memory, and whether to add to it.
func (o *Optimizer) acquireGrad(ctx context.Context, id int) (address uintptr, add bool, err error) {
	var accumulate int64
	err = o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_grad_acquire(raw, int64(id), o.onStream(), &address, &accumulate)
	})
	return address, accumulate != 0, err
}

// GradReady says that the acquired gradient of a parameter is final for this step. The reduction of a bucket starts when all its gradients
// are. It may wait for reductions under way.
func (o *Optimizer) GradReady(ctx context.Context, id int) error {
	return o.GradRangeReady(ctx, id, 0, o.param(id).count)
}

// GradRangeReady is GradReady for count elements from offset on. Each element becomes ready once in a step.
func (o *Optimizer) GradRangeReady(ctx context.Context, id, offset, count int) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_grad_ready(raw, int64(id), nil, int64(offset), int64(count), o.onStream())
	})
}

// GiveGrad is GradRangeReady for a gradient in the program's own memory, which is copied: the elements from offset on.
func GiveGrad[T Element](ctx context.Context, o *Optimizer, id, offset int, grad []T) error {
	if err := checkElement[T]("the gradient of parameter", id, o.param(id).grad); err != nil {
		return err
	}
	return o.giveGrad(ctx, id, offset, placeOf(grad), len(grad))
}

// giveGrad gives elements of a gradient, wherever they lie.
func (o *Optimizer) giveGrad(ctx context.Context, id, offset int, grad unsafe.Pointer, count int) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_grad_ready(raw, int64(id), grad, int64(offset), int64(count), o.onStream())
	})
}

// GiveGradRows gives the whole gradient of a parameter with KeyRows by rows: values has one row after the other for each number in rows.
// Others are zero, and a row that is given several times is added up.
func GiveGradRows[T Element](ctx context.Context, o *Optimizer, id int, rows []int, values []T) error {
	param := o.param(id)
	if err := checkElement[T]("the gradient of parameter", id, param.grad); err != nil {
		return err
	}
	if expected := len(rows) * param.width; len(values) != expected {
		text := fmt.Sprintf("%d elements are given, but %d rows of parameter %d have %d", len(values), len(rows), id, expected)
		return wrap(&czero.Failure{Code: int32(ErrInvalidArgument), Text: text})
	}
	numbers := toInt64s(rows)
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		places := (*int64)(addressOf(numbers))
		return czero.Zero_optimizer_grad_ready_rows(raw, int64(id), places, addressOf(values), int64(len(rows)), o.onStream())
	})
}
