//! Slots of tensors, and their elements by range.

use libzero_sys as sys;

use crate::element::SlotElement;
use crate::enums::{Code, DType, Slot};
use crate::error::{check, Error, Result};
use crate::optimizer::tensors::{check_type, share};
use crate::optimizer::Optimizer;

/// What is kept of a tensor from one step to the next, in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// Which.
    pub slot: Slot,
    /// Of its entries.
    pub dtype: DType,
    /// Entries: elements, or for scales one per 256 elements.
    pub len: usize,
}

/// Read all slots and the scalars to save a run; write them to go on with it. Ids are those of [`Param::id`](crate::Param::id).
impl Optimizer {
    /// The tensor's parameter and states. After [`seal`](Optimizer::seal).
    pub fn slots(&self, id: i64) -> Result<Vec<SlotInfo>> {
        let mut count = 0;
        // SAFETY: the handle is the optimizer's, and the result goes to a local.
        check(unsafe { sys::zero_optimizer_slot_count(self.as_ptr(), id, &mut count) })?;
        (0..count).map(|index| self.slot_at(id, index)).collect()
    }

    /// Fills `data` with entries of one slot of a tensor from `offset` on, whoever owns them. A collective in which each rank gives its own
    /// range, which may be empty.
    pub fn read<T: SlotElement>(&self, id: i64, slot: Slot, offset: usize, data: &mut [T]) -> Result<()> {
        self.check_slot::<T>(id, slot)?;
        // A writer of first values may have lent them to other threads.
        let tensor = self.tensor(id)?;
        let of_param = slot.raw() == sys::ZERO_SLOT_PARAM;
        let _lock = of_param.then(|| share(&self.holder(tensor).values, &tensor.name)).transpose()?;
        // SAFETY: the handle is the optimizer's, and `data` is a slice of the slot's dtype.
        check(unsafe {
            sys::zero_optimizer_read(self.as_ptr(), id, slot.raw(), offset as i64, data.as_mut_ptr().cast(), data.len() as i64, self.stream)
        })
    }

    /// Writes entries of one slot of a tensor from `offset` on, whoever owns them. A collective as [`read`](Optimizer::read); parameters
    /// are visible after [`begin`](Optimizer::begin) from [`Source::Shards`](crate::Source::Shards).
    pub fn write<T: SlotElement>(&mut self, id: i64, slot: Slot, offset: usize, data: &[T]) -> Result<()> {
        self.check_slot::<T>(id, slot)?;
        // SAFETY: as in `read`; `&mut` says that no view lives.
        check(unsafe {
            sys::zero_optimizer_write(self.as_ptr(), id, slot.raw(), offset as i64, data.as_ptr().cast(), data.len() as i64, self.stream)
        })
    }

    /// A slot of a tensor; gradients, which live for one step, are not among [`slots`](Optimizer::slots).
    pub(crate) fn slot_info(&self, id: i64, slot: Slot) -> Result<SlotInfo> {
        let tensor = self.tensor(id)?;
        if slot.raw() == sys::ZERO_SLOT_GRAD {
            return Ok(SlotInfo { slot, dtype: tensor.grad_dtype, len: tensor.count });
        }
        let kept = self.slots(id)?.into_iter().find(|kept| kept.slot.raw() == slot.raw());
        kept.ok_or_else(|| {
            let text = format!("slot {slot:?} is not kept for {}", tensor.name);
            Error::new(Code::Unsupported, text)
        })
    }

    fn check_slot<T: SlotElement>(&self, id: i64, slot: Slot) -> Result<()> {
        let kept = self.slot_info(id, slot)?;
        check_type::<T>(format_args!("slot {slot:?} of {}", self.tensor(id)?.name), kept.dtype)
    }

    fn slot_at(&self, id: i64, index: i64) -> Result<SlotInfo> {
        let (mut slot, mut dtype, mut count) = (0, 0, 0);
        // SAFETY: the handle is the optimizer's, and the results go to locals.
        check(unsafe { sys::zero_optimizer_slot(self.as_ptr(), id, index, &mut slot, &mut dtype, &mut count) })?;
        Ok(SlotInfo { slot: Slot::from_raw(slot as i32), dtype: DType::from_raw(dtype as i32), len: count as usize })
    }
}
