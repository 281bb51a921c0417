package zero

import "example.org/libzero/bindings/go/internal/czero"

// View is a piece of a parameter that this rank updates, contiguous in every slot.
type View[T Element] struct {
	Param  int // the parameter's id
	Offset int // first element within it
	Data   []T // libzero's memory
}

// elementsPerScale is how many elements share a scale.
const elementsPerScale = 256

// ViewCount returns the number of views. After Seal.
func (o *Optimizer) ViewCount() (int, error) {
	var count int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_view_count(raw, &count) })
	return int(count), err
}

// ViewAt returns view number index of a slot. Gradients are valid between Reduce and Gather, everything else from Begin on, outside of Step.
// Who writes parameters through views at other times than between Reduce and Gather acquires them first and calls Begin afterwards.
func ViewAt[T Element](o *Optimizer, index int, slot Slot) (View[T], error) {
	if err := o.checkLends(false); err != nil {
		return View[T]{}, err
	}
	piece, err := pieceAt[T](o, index, slot)
	if err != nil {
		return View[T]{}, err
	}
	return View[T]{piece.param, piece.offset, sliceOf[T](piece.address, piece.count)}, nil
}

// piece is a View wherever its memory lies.
type piece struct {
	param, offset, count int
	address              uintptr
}

func pieceAt[T Element](o *Optimizer, index int, slot Slot) (piece, error) {
	var param, offset, count int64
	var address uintptr
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		failure := czero.Zero_optimizer_view(raw, int64(index), int32(slot), &param, &offset, &count, &address)
		if failure == nil {
			failure = checkSlot[T](o, raw, int(param), slot)
		}
		return failure
	})
	switch slot {
	case SlotParamScale, SlotFirstScale, SlotSecondScale:
		count = (count + elementsPerScale - 1) / elementsPerScale
	case SlotUpdateCount:
		count = 1
	}
	return piece{int(param), int(offset), int(count), address}, err
}

// Views returns all views of a slot, in the same order for every slot.
func Views[T Element](o *Optimizer, slot Slot) ([]View[T], error) {
	count, err := o.ViewCount()
	if err != nil {
		return nil, err
	}
	views := make([]View[T], count)
	for index := range views {
		if views[index], err = ViewAt[T](o, index, slot); err != nil {
			return nil, err
		}
	}
	return views, nil
}
