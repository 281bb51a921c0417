//! Optimizers with a CUDA device: gradients and parameters in its memory.

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::ops::Range;

use libzero_sys as sys;

use crate::device::{DeviceSlice, DeviceSliceMut};
use crate::element::Element;
use crate::elements::Elements;
use crate::enums::Code;
use crate::error::{check, Error, Result};
use crate::optimizer::params::{Acquired, Param};
use crate::optimizer::tensors::{check_type, share, take};
use crate::optimizer::Optimizer;

/// Memory of the device [`Key::Device`](crate::Key::Device). Methods that return it need [`Tier::Device`](crate::Tier::Device).
///
/// Memory of the device is read and written after all work that the stream was given before a call. What the stream is given after a call
/// sees the results.
impl Optimizer {
    /// The stream (a `cudaStream_t`) of all later calls; null: the default stream of the device.
    ///
    /// # Safety
    /// `stream` is null or a stream of the optimizer's device. It exists until another one was set and everything that was acquired
    /// meanwhile was given back.
    pub unsafe fn set_stream(&mut self, stream: *mut c_void) {
        self.stream = stream;
    }

    /// [`grad_ready`](Optimizer::grad_ready) of elements on the device.
    pub fn grad_ready_device<T, G: Element>(&self, param: Param<T, G>, offset: usize, grad: DeviceSlice<'_, G>) -> Result<()> {
        let tensor = self.tensor(param.id())?;
        let mut untouched = self.lock_gradient::<G>(tensor)?;
        self.check_device(grad.device())?;
        let place = place_of(grad);
        // SAFETY: the handle is the optimizer's, and the elements of the gradient's dtype lie on its device, as who made the slice promised.
        check(unsafe { sys::zero_optimizer_grad_ready(self.as_ptr(), param.id(), place, offset as i64, grad.len() as i64, self.stream) })?;
        *untouched = false;
        Ok(())
    }

    /// [`grads_ready`](Optimizer::grads_ready) of gradients on the device.
    pub fn grads_ready_device<T, G: Element>(&self, grads: &[(Param<T, G>, DeviceSlice<'_, G>)]) -> Result<()> {
        let mut ids = Vec::with_capacity(grads.len());
        let mut places: Vec<*const c_void> = Vec::with_capacity(grads.len());
        for &(param, grad) in grads {
            let tensor = self.tensor(param.id())?;
            self.check_device(grad.device())?;
            if grad.len() != tensor.count {
                let text = format!("the gradient of {} has {} elements, but the slice holds {}", tensor.name, tensor.count, grad.len());
                return Err(Error::new(Code::InvalidArgument, text));
            }
            *self.lock_gradient::<G>(tensor)? = false;
            ids.push(param.id());
            places.push(place_of(grad));
        }
        // SAFETY: as above, of each gradient.
        check(unsafe { sys::zero_optimizer_grads_ready(self.as_ptr(), ids.as_ptr(), ids.len() as i64, places.as_mut_ptr(), self.stream) })
    }

    /// [`grad`](Optimizer::grad) on the device. Taken again before it is ready, it also accumulates if nothing was written.
    pub fn grad_device<T, G: Element>(&self, param: Param<T, G>) -> Result<DeviceGradView<'_, G>> {
        self.check_lends(true)?;
        let tensor = self.tensor(param.id())?;
        let mut lock = self.lock_gradient::<G>(tensor)?;
        let (elements, accumulates) = self.acquire_grad(param.id(), tensor.count)?;
        *lock = false;
        Ok(DeviceGradView { optimizer: self, id: param.id(), elements, accumulates, _lock: lock })
    }

    /// [`param`](Optimizer::param) on the device.
    pub fn param_device<T: Element, G>(&self, param: Param<T, G>) -> Result<DeviceParamView<'_, T>> {
        self.check_lends(true)?;
        let tensor = self.tensor(param.id())?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        let lock = share(&self.holder(tensor).values, &tensor.name)?;
        Ok(DeviceParamView { device: self.device, acquired: self.acquire(param.id(), tensor.count)?, _lock: lock })
    }

    /// [`param_mut`](Optimizer::param_mut) on the device.
    pub fn param_mut_device<T: Element, G>(&self, param: Param<T, G>) -> Result<DeviceParamViewMut<'_, T>> {
        self.check_lends(true)?;
        let tensor = self.tensor(param.id())?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        self.check_not_begun()?;
        let lock = take(&self.holder(tensor).values, &tensor.name)?;
        Ok(DeviceParamViewMut { device: self.device, acquired: self.acquire(param.id(), tensor.count)?, _lock: lock })
    }

    /// [`param_into`](Optimizer::param_into) on the device.
    pub fn param_into_device<T: Element, G>(&self, param: Param<T, G>, values: &mut DeviceSliceMut<'_, T>) -> Result<()> {
        let tensor = self.tensor(param.id())?;
        check_type::<T>(&tensor.name, tensor.dtype)?;
        self.check_device(values.device())?;
        let _lock = share(&self.holder(tensor).values, &tensor.name)?;
        // SAFETY: the elements lie on the optimizer's device, as who made the slice promised.
        unsafe { self.fill(param.id(), values.as_mut_ptr().cast(), values.len()) }
    }

    /// An error unless memory of a device is what this optimizer takes: C would take it for memory of the host where it has no device.
    fn check_device(&self, device: i64) -> Result<()> {
        if device == self.device && device >= 0 {
            return Ok(());
        }
        let has = if self.device < 0 { "no Key::Device".into() } else { format!("Key::Device {}", self.device) };
        Err(Error::new(Code::InvalidArgument, format!("the memory lies on CUDA device {device}, but the optimizer has {has}")))
    }

    /// An error unless the library's memory is where a method expects it.
    pub(super) fn check_lends(&self, on_device: bool) -> Result<()> {
        let text = match (self.on_device, on_device) {
            (true, false) => "the optimizer keeps its memory on a device (Tier::Device); the methods that end with _device return it",
            (false, true) => "the optimizer keeps its memory on the host (Tier::Host); the methods without _device return it",
            _ => return Ok(()),
        };
        Err(Error::new(Code::Unsupported, text))
    }
}

/// Where elements lie. C takes null for memory that was acquired, so no elements lie somewhere too.
fn place_of<G: Element>(grad: DeviceSlice<'_, G>) -> *const c_void {
    let first: *const c_void = grad.as_ptr().cast();
    if first.is_null() {
        std::ptr::NonNull::<G>::dangling().as_ptr() as *const c_void
    } else {
        first
    }
}

/// A tensor's gradient in the library's memory on a device ([`Optimizer::grad_device`]). A view that is dropped before it is ready leaves it
/// acquired, for another.
///
/// It is neither [`Send`] nor [`Sync`].
pub struct DeviceGradView<'a, G: Element> {
    optimizer: &'a Optimizer,
    id: i64,
    elements: Elements<G>,
    accumulates: bool,
    _lock: RefMut<'a, bool>,
}

impl<G: Element> DeviceGradView<'_, G> {
    /// False: overwrite. True: add to what is there.
    pub fn accumulates(&self) -> bool {
        self.accumulates
    }

    /// The elements, to be written by work of the optimizer's stream.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_, G> {
        // SAFETY: acquired until all of it was made ready, by this view, since the lock keeps others away.
        unsafe { DeviceSliceMut::from_raw(self.optimizer.device, self.elements.place(), self.elements.count()) }
    }

    /// Says that all elements are final for this step.
    pub fn ready(self) -> Result<()> {
        self.optimizer.filled(self.id, 0..self.elements.count())
    }

    /// Says that a range of elements is final. With the last of them the memory goes, and the view is empty.
    pub fn ready_range(&mut self, range: Range<usize>) -> Result<()> {
        if range.start > range.end {
            let text = format!("range is {} .. {}, but must not end before it starts", range.start, range.end);
            return Err(Error::new(Code::InvalidArgument, text));
        }
        let outcome = self.optimizer.filled(self.id, range);
        if self.optimizer.acquire_grad::<G>(self.id, self.elements.count()).is_err() {
            self.elements = Elements::none();
        }
        outcome
    }
}

/// A parameter's values on a device ([`Optimizer::param_device`]).
///
/// It is neither [`Send`] nor [`Sync`].
pub struct DeviceParamView<'a, T: Element> {
    device: i64,
    acquired: Acquired<'a, T>,
    _lock: Ref<'a, ()>,
}

impl<T: Element> DeviceParamView<'_, T> {
    /// The elements, for work of the stream. All work that reads them was given to the stream before the view is dropped.
    pub fn slice(&self) -> DeviceSlice<'_, T> {
        // SAFETY: acquired until drop.
        unsafe { DeviceSlice::from_raw(self.device, self.acquired.elements.place(), self.acquired.elements.count()) }
    }
}

/// A parameter's values on a device before the first begin, to be written ([`Optimizer::param_mut_device`]).
///
/// It is neither [`Send`] nor [`Sync`].
pub struct DeviceParamViewMut<'a, T: Element> {
    device: i64,
    acquired: Acquired<'a, T>,
    _lock: RefMut<'a, ()>,
}

impl<T: Element> DeviceParamViewMut<'_, T> {
    /// The elements, for work of the stream. All work that uses them was given to the stream before the view is dropped.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_, T> {
        // SAFETY: acquired until drop; the lock keeps other views away.
        unsafe { DeviceSliceMut::from_raw(self.device, self.acquired.elements.place(), self.acquired.elements.count()) }
    }
}
