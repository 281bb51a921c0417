//! Module buffers: tensors that belong to the model but are no parameters.

use std::cell::RefMut;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;

use libzero_sys as sys;

use crate::element::Element;
use crate::elements::{debug_as_slice, Elements};
use crate::error::{check, Result};
use crate::optimizer::tensors::{check_type, take};
use crate::optimizer::Optimizer;

/// A module buffer of an [`Optimizer`] ([`Optimizer::add_module_buffer`]).
/// It is [`Send`] and [`Sync`].
pub struct ModuleBuffer<T> {
    id: i64,
    elements: PhantomData<fn() -> T>,
}

impl<T> ModuleBuffer<T> {
    pub(crate) fn new(id: i64) -> Self {
        ModuleBuffer { id, elements: PhantomData }
    }

    /// 0, 1, 2 ... in order of registration, counted apart from parameters.
    pub fn id(self) -> i64 {
        self.id
    }
}

impl<T> Clone for ModuleBuffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ModuleBuffer<T> {}

impl<T> fmt::Debug for ModuleBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModuleBuffer").field(&self.id).finish()
    }
}

impl Optimizer {
    /// A module buffer, whole on every rank, zero at first; one view of it at a time. After [`seal`](Optimizer::seal).
    pub fn module_buffer<T: Element>(&self, buffer: ModuleBuffer<T>) -> Result<ModuleBufferView<'_, T>> {
        let tensor = self.module_tensor(buffer.id)?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        let lock = take(&tensor.values, &tensor.name)?;
        let (mut data, mut count) = (ptr::null_mut(), 0);
        // SAFETY: the handle is the optimizer's, and the results go to locals.
        check(unsafe { sys::zero_optimizer_module_buffer(self.as_ptr(), buffer.id, &mut data, &mut count) })?;
        Ok(ModuleBufferView { elements: Elements::new(data, count as usize), _lock: lock })
    }

    /// Brings all module buffers in line by their rules. A collective, at any time after [`seal`](Optimizer::seal).
    pub fn sync_module_buffers(&mut self) -> Result<()> {
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_sync_module_buffers(self.as_ptr(), self.stream) })
    }
}

/// The elements of a module buffer ([`Optimizer::module_buffer`]).
///
/// It is neither [`Send`] nor [`Sync`]; the slice in it may be lent to other threads.
pub struct ModuleBufferView<'a, T: Element> {
    elements: Elements<T>,
    _lock: RefMut<'a, ()>,
}

impl<T: Element> Deref for ModuleBufferView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory lives from seal to the optimizer's end; the lock keeps other views away, and sync, which changes it on all
        // ranks, takes the optimizer by `&mut`.
        unsafe { self.elements.slice() }
    }
}

impl<T: Element> DerefMut for ModuleBufferView<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { self.elements.slice_mut() }
    }
}

debug_as_slice!(ModuleBufferView);
