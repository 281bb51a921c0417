//! Views of what a rank updates.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libzero_sys as sys;

use crate::device::DeviceSliceMut;
use crate::element::SlotElement;
use crate::elements::Elements;
use crate::enums::{Code, Slot};
use crate::error::{check, Error, Result};
use crate::optimizer::tensors::check_type;
use crate::optimizer::Optimizer;

/// A piece of a tensor that this rank updates, contiguous in every slot. In stage 0 all of the tensor, otherwise what of it lies in the
/// rank's shard.
///
/// It is neither [`Send`] nor [`Sync`]; the slices in it may be lent to other threads.
#[derive(Debug)]
pub struct View<'a> {
    optimizer: &'a Optimizer,
    index: i64,
    param: i64,
    range: Range<usize>,
    /// Slots that were handed out, a bit for each.
    taken: u64,
    reduced: bool,
}

impl Optimizer {
    /// The pieces of all parameters that this rank updates, with their states, from [`begin`](Optimizer::begin) on. Parameters and
    /// gradients are in the views between reduce and gather ([`Reduction::views`](crate::Reduction::views)).
    pub fn views(&mut self) -> Result<Vec<View<'_>>> {
        View::all(self, false)
    }

    fn view(&self, index: i64, slot: i32) -> Result<(i64, Range<usize>, *mut std::ffi::c_void)> {
        let (mut param, mut offset, mut count, mut data) = (0, 0, 0, ptr::null_mut());
        // SAFETY: the handle is the optimizer's, and the results go to locals.
        check(unsafe { sys::zero_optimizer_view(self.as_ptr(), index, slot, &mut param, &mut offset, &mut count, &mut data) })?;
        Ok((param, offset as usize..(offset + count) as usize, data))
    }
}

impl<'a> View<'a> {
    /// Each view once: they do not overlap.
    pub(crate) fn all(optimizer: &'a mut Optimizer, reduced: bool) -> Result<Vec<View<'a>>> {
        let optimizer = &*optimizer;
        let mut count = 0;
        // SAFETY: the handle is the optimizer's, and the result goes to a local.
        check(unsafe { sys::zero_optimizer_view_count(optimizer.as_ptr(), &mut count) })?;
        let view = |index| {
            let (param, range, _) = optimizer.view(index, sys::ZERO_SLOT_PARAM)?;
            Ok(View { optimizer, index, param, range, taken: 0, reduced })
        };
        (0..count).map(view).collect()
    }

    /// The id of the tensor.
    pub fn param(&self) -> i64 {
        self.param
    }

    /// Which elements of the tensor these are.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The elements in one slot. Each slot is handed out once per view, so that slices of several slots can be used together.
    pub fn slot<T: SlotElement>(&mut self, slot: Slot) -> Result<&'a mut [T]> {
        self.optimizer.check_lends(false)?;
        self.check_slot::<T>(slot)?;
        let (_, range, data) = self.optimizer.view(self.index, slot.raw())?;
        self.taken |= Self::bit(slot);
        // SAFETY: the memory lives as long as the optimizer, which is borrowed by `&mut` for 'a; no two views, and no two slots of one,
        // share elements, and each is handed out once. Other ranks reach parameters and gradients only within collectives.
        Ok(unsafe { Elements::new(data, range.len()).slice_mut() })
    }

    /// As [`slot`](View::slot), with [`Tier::Device`](crate::Tier::Device).
    pub fn slot_device<T: SlotElement>(&mut self, slot: Slot) -> Result<DeviceSliceMut<'a, T>> {
        self.optimizer.check_lends(true)?;
        self.check_slot::<T>(slot)?;
        let (_, range, data) = self.optimizer.view(self.index, slot.raw())?;
        self.taken |= Self::bit(slot);
        // SAFETY: as above.
        Ok(unsafe { DeviceSliceMut::from_raw(self.optimizer.device, data.cast(), range.len()) })
    }

    fn check_slot<T: SlotElement>(&self, slot: Slot) -> Result<()> {
        let name = &self.optimizer.tensor(self.param)?.name;
        if slot.raw() == sys::ZERO_SLOT_PARAM && !self.reduced {
            let text = "views have parameters between reduce and gather; read and write reach them at other times";
            return Err(Error::new(Code::State, text));
        }
        // A reduction of a custom algorithm has waited for saves.
        let waited = self.reduced && self.optimizer.custom;
        if !waited && slot.raw() != sys::ZERO_SLOT_GRAD && Arc::strong_count(&self.optimizer.readers) > 1 {
            let text = format!("a save in the background reads slot {slot:?} of {name}; wait for the Saving first, or use Snapshot::Copy");
            return Err(Error::new(Code::State, text));
        }
        if self.taken & Self::bit(slot) != 0 {
            let text = format!("slot {slot:?} of this view of {name} was handed out before");
            return Err(Error::new(Code::State, text));
        }
        let kept = self.optimizer.slot_info(self.param, slot)?;
        check_type::<T>(format_args!("slot {slot:?} of {name}"), kept.dtype)?;
        if kept.len != self.optimizer.tensor(self.param)?.count {
            let text = format!("slot {slot:?} of {name} has no entry of its own per element; read and write reach it");
            return Err(Error::new(Code::Unsupported, text));
        }
        Ok(())
    }

    /// Slots are numbers below 64; what is not is no slot, as `slot_info` tells.
    fn bit(slot: Slot) -> u64 {
        u32::try_from(slot.raw()).ok().and_then(|number| 1u64.checked_shl(number)).unwrap_or(0)
    }
}
