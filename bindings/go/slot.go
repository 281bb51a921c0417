package zero

import (
	"context"
	"fmt"

	"example.org/libzero/bindings/go/internal/czero"
)

// Slot is what is kept per element of a parameter.
type Slot int32

// Slots. Those of scales have one entry per 256 elements, SlotUpdateCount has one, an int64.
const (
	SlotParam        = Slot(czero.ZERO_SLOT_PARAM) // the parameter as it is stored
	SlotGrad         = Slot(czero.ZERO_SLOT_GRAD)
	SlotMaster       = Slot(czero.ZERO_SLOT_MASTER)        // of 16-bit and 8-bit parameters
	SlotAverage      = Slot(czero.ZERO_SLOT_AVERAGE)       // with KeyAverage
	SlotParamScale   = Slot(czero.ZERO_SLOT_PARAM_SCALE)   // of 8-bit parameters
	SlotAnchor       = Slot(czero.ZERO_SLOT_ANCHOR)        // with KeySyncPeriod above 1: what all replicas last had in common
	SlotUpdateCount  = Slot(czero.ZERO_SLOT_UPDATE_COUNT)  // with UnfilledUntouched: steps that updated the parameter
	SlotFirstMoment  = Slot(czero.ZERO_SLOT_FIRST_MOMENT)  // adam, adamw: m; sgd: the momentum buffer
	SlotSecondMoment = Slot(czero.ZERO_SLOT_SECOND_MOMENT) // adam, adamw: v
	SlotOuterMoment  = Slot(czero.ZERO_SLOT_OUTER_MOMENT)  // with KeyOuterMomentum
	SlotFirstScale   = Slot(czero.ZERO_SLOT_FIRST_SCALE)   // of 8-bit first moments
	SlotSecondScale  = Slot(czero.ZERO_SLOT_SECOND_SCALE)  // of 8-bit second moments
	SlotCustom       = Slot(czero.ZERO_SLOT_CUSTOM)        // the first of the algorithm "custom"; SlotCustom + 1 is the second
)

// String returns its name, for example "first_moment".
func (s Slot) String() string {
	if s > SlotCustom && s < SlotCustom+4 {
		return fmt.Sprintf("custom+%d", s-SlotCustom)
	}
	return nameOf("ZERO_SLOT_", int64(s))
}

// SlotInfo describes a slot of a parameter.
type SlotInfo struct {
	Slot  Slot
	DType DType
	Count int // entries
}

// Slots returns what is kept of a parameter from one step to the next: ReadSlot all of them on all ranks to save a run. After Seal.
func (o *Optimizer) Slots(id int) ([]SlotInfo, error) {
	var slots []SlotInfo
	err := o.self().do(func(raw czero.Optimizer) (failure *czero.Failure) {
		slots, failure = slotsOf(raw, id)
		return failure
	})
	return slots, err
}

// slotsOf is Slots within a call.
func slotsOf(raw czero.Optimizer, id int) ([]SlotInfo, *czero.Failure) {
	var count int64
	if failure := czero.Zero_optimizer_slot_count(raw, int64(id), &count); failure != nil {
		return nil, failure
	}
	slots := make([]SlotInfo, count)
	for index := range slots {
		var slot, dtype, entries int64
		if failure := czero.Zero_optimizer_slot(raw, int64(id), int64(index), &slot, &dtype, &entries); failure != nil {
			return nil, failure
		}
		slots[index] = SlotInfo{Slot(slot), DType(dtype), int(entries)}
	}
	return slots, nil
}

// ReadSlot sets data to the entries of a parameter's slot from offset on, whoever owns them. A collective in which each rank gives its own
// range, which may be empty.
func ReadSlot[T Element](ctx context.Context, o *Optimizer, id int, slot Slot, offset int, data []T) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		if failure := checkSlot[T](o, raw, id, slot); failure != nil {
			return failure
		}
		return czero.Zero_optimizer_read(raw, int64(id), int32(slot), int64(offset), addressOf(data), int64(len(data)), o.onStream())
	})
}

// WriteSlot sets the entries of a parameter's slot from offset on to data. As ReadSlot; where the ranges of ranks overlap, the highest rank's
// values stay. Parameters written are visible after Begin(SourceShards).
func WriteSlot[T Element](ctx context.Context, o *Optimizer, id int, slot Slot, offset int, data []T) error {
	return o.self().wait(ctx, func(raw czero.Optimizer) *czero.Failure {
		if failure := checkSlot[T](o, raw, id, slot); failure != nil {
			return failure
		}
		return czero.Zero_optimizer_write(raw, int64(id), int32(slot), int64(offset), addressOf(data), int64(len(data)), o.onStream())
	})
}

// checkSlot is checkElement of a slot, within the call that moves or hands out its entries.
func checkSlot[T Element](o *Optimizer, raw czero.Optimizer, id int, slot Slot) *czero.Failure {
	return mismatch[T](slot.String()+" of parameter", id, o.slotInfo(raw, id, slot).DType)
}

// slotInfo returns what is known of a slot; nothing where libzero will refuse it.
func (o *Optimizer) slotInfo(raw czero.Optimizer, id int, slot Slot) SlotInfo {
	param := o.param(id)
	if slot == SlotGrad {
		return SlotInfo{slot, param.grad, param.count}
	}
	if param.slots == nil {
		param.slots, _ = slotsOf(raw, id)
		o.keepSlots(id, param.slots)
	}
	for _, info := range param.slots {
		if info.Slot == slot {
			return info
		}
	}
	return SlotInfo{}
}

// keepSlots remembers the slots of a parameter, which do not change once there are any.
func (o *Optimizer) keepSlots(id int, slots []SlotInfo) {
	if slots != nil {
		o.layouts.Lock()
		defer o.layouts.Unlock()
		o.params[id].slots = slots
	}
}
