//! Parameters: handles, and views of their values.

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;

use libzero_sys as sys;

use crate::element::Element;
use crate::elements::{debug_as_slice, Elements};
use crate::enums::Code;
use crate::error::{check, Error, Result};
use crate::optimizer::tensors::{check_type, share, take};
use crate::optimizer::Optimizer;

/// A parameter of an [`Optimizer`], with elements `T` and gradients `G`.
/// It is [`Send`] and [`Sync`].
pub struct Param<T, G = T> {
    id: i64,
    elements: PhantomData<fn() -> (T, G)>,
}

impl<T, G> Param<T, G> {
    pub(crate) fn new(id: i64) -> Self {
        Param { id, elements: PhantomData }
    }

    /// 0, 1, 2 ... in order of registration.
    pub fn id(self) -> i64 {
        self.id
    }

    /// The same parameter with gradients of another type, as [`Key::GradDtype`](crate::Key::GradDtype) made them.
    pub fn with_gradient<H: Element>(self) -> Param<T, H> {
        Param::new(self.id)
    }
}

impl<T, G> Clone for Param<T, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, G> Copy for Param<T, G> {}

impl<T, G> fmt::Debug for Param<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Param").field(&self.id).finish()
    }
}

impl Optimizer {
    /// The whole tensor, until the view is dropped. In stages 0 to 2 every rank holds it; in stage 3 it is gathered from the shards: a
    /// collective.
    pub fn param<T: Element, G>(&self, param: Param<T, G>) -> Result<ParamView<'_, T>> {
        self.check_lends(false)?;
        let tensor = self.tensor(param.id)?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        let lock = share(&self.holder(tensor).values, &tensor.name)?;
        Ok(ParamView { acquired: self.acquire(param.id, tensor.count)?, _lock: lock })
    }

    /// The whole tensor, to be filled with first values: after [`seal`](Optimizer::seal), before the first [`begin`](Optimizer::begin).
    /// Later changes go through [`write`](Optimizer::write).
    pub fn param_mut<T: Element, G>(&self, param: Param<T, G>) -> Result<ParamViewMut<'_, T>> {
        self.check_lends(false)?;
        let tensor = self.tensor(param.id)?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        self.check_not_begun()?;
        let lock = take(&self.holder(tensor).values, &tensor.name)?;
        Ok(ParamViewMut { acquired: self.acquire(param.id, tensor.count)?, _lock: lock })
    }

    /// Fills `values` with the whole tensor, exactly its elements. In stage 3 a collective.
    pub fn param_into<T: Element, G>(&self, param: Param<T, G>, values: &mut [T]) -> Result<()> {
        let tensor = self.tensor(param.id)?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        let _lock = share(&self.holder(tensor).values, &tensor.name)?;
        // SAFETY: `values` is a slice of the parameter's dtype.
        unsafe { self.fill(param.id, values.as_mut_ptr().cast(), values.len()) }
    }

    /// # Safety
    /// `count` elements of the parameter's dtype lie at `values`, where the optimizer writes them.
    pub(super) unsafe fn fill(&self, id: i64, values: *mut c_void, count: usize) -> Result<()> {
        let mut data = ptr::null_mut();
        // SAFETY: the handle is the optimizer's, and the memory is given back below.
        check(unsafe { sys::zero_optimizer_param_acquire(self.as_ptr(), id, values, count as i64, self.stream, &mut data) })?;
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_param_release(self.as_ptr(), id) })
    }

    /// What may not be written through addresses any more.
    pub(super) fn check_not_begun(&self) -> Result<()> {
        if !self.begun {
            return Ok(());
        }
        let text = "parameters are read-only after begin; change them with write, and call begin with Source::Shards";
        Err(Error::new(Code::State, text))
    }

    pub(super) fn acquire<T: Element>(&self, id: i64, count: usize) -> Result<Acquired<'_, T>> {
        let mut data = ptr::null_mut();
        // SAFETY: the handle is the optimizer's; without a destination the memory is libzero's.
        check(unsafe { sys::zero_optimizer_param_acquire(self.as_ptr(), id, ptr::null_mut(), 0, self.stream, &mut data) })?;
        Ok(Acquired { optimizer: self, id, elements: Elements::new(data, count) })
    }
}

/// One acquire, until drop.
pub(super) struct Acquired<'a, T> {
    optimizer: &'a Optimizer,
    id: i64,
    pub(super) elements: Elements<T>,
}

impl<T> Drop for Acquired<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the optimizer lives, and the memory is not used again. It fails only when the optimizer is lost, as later calls tell.
        unsafe { sys::zero_optimizer_param_release(self.optimizer.as_ptr(), self.id) };
    }
}

/// A parameter's values ([`Optimizer::param`]).
///
/// It is neither [`Send`] nor [`Sync`]; the slice in it may be lent to other threads.
pub struct ParamView<'a, T: Element> {
    acquired: Acquired<'a, T>,
    _lock: Ref<'a, ()>,
}

impl<T: Element> Deref for ParamView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: acquired until drop. What changes parameters takes the optimizer by `&mut` on this rank, and is a collective, which this
        // rank cannot be in, on the others; or it is a `ParamViewMut`, of which the lock keeps apart.
        unsafe { self.acquired.elements.slice() }
    }
}

/// A parameter's values before the first begin, to be written ([`Optimizer::param_mut`]).
///
/// It is neither [`Send`] nor [`Sync`]; the slice in it may be lent to other threads.
pub struct ParamViewMut<'a, T: Element> {
    acquired: Acquired<'a, T>,
    _lock: RefMut<'a, ()>,
}

impl<T: Element> Deref for ParamViewMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: acquired until drop. The lock keeps this rank's other views and its `read` away, and other ranks read here only in a
        // collective that this rank takes part in: that `read`, or `begin`, which takes the optimizer by `&mut`.
        unsafe { self.acquired.elements.slice() }
    }
}

impl<T: Element> DerefMut for ParamViewMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { self.acquired.elements.slice_mut() }
    }
}

debug_as_slice!(ParamView);
debug_as_slice!(ParamViewMut);
