//! Gradients: filled in libzero's memory, or given from the caller's.

use std::cell::RefMut;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut, Range};
use std::ptr;

use libzero_sys as sys;

use crate::element::Element;
use crate::elements::{debug_as_slice, Elements};
use crate::enums::Code;
use crate::error::{check, Error, Result};
use crate::optimizer::params::Param;
use crate::optimizer::tensors::{check_type, take, Tensor};
use crate::optimizer::Optimizer;

impl Optimizer {
    /// Memory for the tensor's gradient, which the view gives back with [`ready`](GradView::ready). A view that is dropped before leaves it
    /// acquired, for another.
    pub fn grad<T, G: Element>(&self, param: Param<T, G>) -> Result<GradView<'_, G>> {
        self.check_lends(false)?;
        let tensor = self.tensor(param.id())?;
        let mut untouched = self.lock_gradient::<G>(tensor)?;
        let (elements, again) = self.acquire_grad(param.id(), tensor.count)?;
        *untouched |= !again;
        Ok(GradView { optimizer: self, id: param.id(), elements, accumulates: !*untouched, untouched })
    }

    /// Gives elements of the tensor's gradient from `offset` on, which are copied and final for this step. Ranges may come one by one, each
    /// element once per step.
    pub fn grad_ready<T, G: Element>(&self, param: Param<T, G>, offset: usize, grad: &[G]) -> Result<()> {
        let tensor = self.tensor(param.id())?;
        let mut untouched = self.lock_gradient::<G>(tensor)?;
        // SAFETY: the handle is the optimizer's, and `grad` is a slice of the gradient's dtype.
        check(unsafe {
            sys::zero_optimizer_grad_ready(self.as_ptr(), param.id(), grad.as_ptr().cast(), offset as i64, grad.len() as i64, self.stream)
        })?;
        *untouched = false;
        Ok(())
    }

    /// Gives the whole gradient of a tensor with [`Key::Rows`](crate::Key::Rows) by rows: `values` has one row after the other for each
    /// number in `rows`. Others are zero, and a row that is given several times is added up.
    pub fn grad_ready_rows<T, G: Element>(&self, param: Param<T, G>, rows: &[i64], values: &[G]) -> Result<()> {
        let tensor = self.tensor(param.id())?;
        let mut untouched = self.lock_gradient::<G>(tensor)?;
        let (given, expected) = (values.len(), rows.len() * tensor.width);
        if given != expected {
            let text = format!("{given} elements are given, but {} rows of {} have {expected}", rows.len(), tensor.name);
            return Err(Error::new(Code::InvalidArgument, text));
        }
        // SAFETY: the handle is the optimizer's, and `values` has a row of the gradient's dtype for each of `rows`.
        check(unsafe {
            sys::zero_optimizer_grad_ready_rows(
                self.as_ptr(),
                param.id(),
                rows.as_ptr(),
                values.as_ptr().cast(),
                rows.len() as i64,
                self.stream,
            )
        })?;
        *untouched = false;
        Ok(())
    }

    /// Gives the whole gradients of several tensors in one call, in their order, as [`grad_ready`](Optimizer::grad_ready) gives one. Where it
    /// fails at one of them, those before it are given.
    pub fn grads_ready<T, G: Element>(&self, grads: &[(Param<T, G>, &[G])]) -> Result<()> {
        let mut ids = Vec::with_capacity(grads.len());
        let mut places: Vec<*const c_void> = Vec::with_capacity(grads.len());
        for &(param, grad) in grads {
            let tensor = self.tensor(param.id())?;
            if grad.len() != tensor.count {
                let text = format!("the gradient of {} has {} elements, but the slice holds {}", tensor.name, tensor.count, grad.len());
                return Err(Error::new(Code::InvalidArgument, text));
            }
            // Memory that was handed out, untouched, holds zeros since its view was dropped: to add to it is right also where the call fails.
            *self.lock_gradient::<G>(tensor)? = false;
            ids.push(param.id());
            places.push(grad.as_ptr().cast());
        }
        // SAFETY: the handle is the optimizer's, and every place is that of a slice with all elements of the gradient's dtype.
        check(unsafe { sys::zero_optimizer_grads_ready(self.as_ptr(), ids.as_ptr(), ids.len() as i64, places.as_mut_ptr(), self.stream) })
    }

    /// For one view or call at a time, of the gradient's own type.
    pub(super) fn lock_gradient<G: Element>(&self, tensor: &Tensor) -> Result<RefMut<'_, bool>> {
        check_type::<G>(format_args!("the gradient of {}", tensor.name), tensor.grad_dtype)?;
        take(&self.holder(tensor).gradient, format_args!("the gradient of {}", tensor.name))
    }

    /// The memory, and whether libzero has handed it out before: it does not know what was written there.
    pub(super) fn acquire_grad<G: Element>(&self, id: i64, count: usize) -> Result<(Elements<G>, bool)> {
        let (mut data, mut again) = (ptr::null_mut(), 0);
        // SAFETY: the handle is the optimizer's, and the results go to locals.
        check(unsafe { sys::zero_optimizer_grad_acquire(self.as_ptr(), id, self.stream, &mut data, &mut again) })?;
        Ok((Elements::new(data, count), again != 0))
    }

    /// Says that a range of the acquired memory was filled.
    pub(super) fn filled(&self, id: i64, range: Range<usize>) -> Result<()> {
        // SAFETY: the handle is the optimizer's; no address means the acquired one.
        check(unsafe {
            sys::zero_optimizer_grad_ready(self.as_ptr(), id, ptr::null(), range.start as i64, range.len() as i64, self.stream)
        })
    }
}

/// A tensor's gradient in libzero's memory ([`Optimizer::grad`]). What is in it at first means something only when it
/// [`accumulates`](GradView::accumulates).
///
/// It is neither [`Send`] nor [`Sync`]; the slice in it may be lent to other threads.
pub struct GradView<'a, G: Element> {
    optimizer: &'a Optimizer,
    id: i64,
    elements: Elements<G>,
    accumulates: bool,
    untouched: RefMut<'a, bool>,
}

impl<G: Element> GradView<'_, G> {
    /// False before anything of the gradient was written in this step: overwrite. True later: add to what is there.
    pub fn accumulates(&self) -> bool {
        self.accumulates
    }

    /// Says that all elements are final for this step; when the last tensor of a bucket is, its reduction starts.
    pub fn ready(mut self) -> Result<()> {
        let all = 0..self.len();
        self.give(all)
    }

    /// Says that a range of elements is final. With the last of them the memory goes, and the view is empty.
    pub fn ready_range(&mut self, range: Range<usize>) -> Result<()> {
        let outcome = self.give(range);
        if !self.is_acquired() {
            self.elements = Elements::none();
        }
        outcome
    }

    /// Which range is the last, libzero knows: it hands the memory out again as long as it is there.
    fn is_acquired(&self) -> bool {
        self.optimizer.acquire_grad::<G>(self.id, self.elements.count()).is_ok()
    }

    /// What is final counts as written.
    fn give(&mut self, range: Range<usize>) -> Result<()> {
        if range.start > range.end {
            let text = format!("range is {} .. {}, but must not end before it starts", range.start, range.end);
            return Err(Error::new(Code::InvalidArgument, text));
        }
        self.optimizer.filled(self.id, range)?;
        *self.untouched = false;
        Ok(())
    }
}

impl<G: Element> Deref for GradView<'_, G> {
    type Target = [G];

    fn deref(&self) -> &[G] {
        // SAFETY: acquired until all of it was made ready, by this view, since the lock keeps others away; the step takes the optimizer by
        // `&mut`. Other ranks do not read what is not ready.
        unsafe { self.elements.slice() }
    }
}

impl<G: Element> DerefMut for GradView<'_, G> {
    fn deref_mut(&mut self) -> &mut [G] {
        *self.untouched = false;
        // SAFETY: as above.
        unsafe { self.elements.slice_mut() }
    }
}

impl<G: Element> Drop for GradView<'_, G> {
    /// Who takes the memory up again may have given elements from elsewhere meanwhile, and adds to zeros then.
    fn drop(&mut self) {
        if *self.untouched && self.is_acquired() {
            // SAFETY: as above.
            unsafe { self.elements.slice_mut() }.fill(G::default());
        }
    }
}

debug_as_slice!(GradView);
