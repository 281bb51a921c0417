//! ZeRO optimizers: parameters, gradients and optimizer states of a model, sharded over the ranks of a group.

mod devices;
mod grads;
mod module_buffers;
mod params;
mod registration;
mod scalars;
mod slots;
mod steps;
mod tensors;
mod verification;
mod views;

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libzero_sys as sys;

use crate::config::{config_ptr, Config};
use crate::enums::{DType, Source};
use crate::error::{check, Result};
use crate::group::Group;
use tensors::{ModuleTensor, Tensor};

pub use devices::{DeviceGradView, DeviceParamView, DeviceParamViewMut};
pub use grads::GradView;
pub use module_buffers::{ModuleBuffer, ModuleBufferView};
pub use params::{Param, ParamView, ParamViewMut};
pub use registration::Initialiser;
pub use slots::SlotInfo;
pub use steps::{Reduction, StepResult};
pub use verification::VerifyResult;
pub use views::View;

/// A ZeRO optimizer. [`Key::Stage`](crate::Key::Stage) says what is sharded; all stages give the same bits.
///
/// Its life: [`new`](Optimizer::new), [`add_param`](Optimizer::add_param) for each tensor, [`seal`](Optimizer::seal), first values,
/// [`begin`](Optimizer::begin); then for each step [`param`](Optimizer::param) around use, [`grad`](Optimizer::grad) or
/// [`grad_ready`](Optimizer::grad_ready) or [`grads_ready`](Optimizer::grads_ready), [`step`](Optimizer::step). All ranks add the same
/// parameters in the same order.
///
/// ```
/// use libzero::{Config, Group, Key, Optimizer, Source};
///
/// let group = Group::alone(None)?;
/// let mut optimizer = Optimizer::new(&group, None)?; // adamw, stage 1
/// let w = optimizer.add_param::<f32>("w", &[2, 3], None)?;
/// optimizer.seal()?;
/// optimizer.param_mut(w)?.copy_from_slice(&[0.5; 6]);
/// optimizer.begin(Source::Root)?;
///
/// let mut gradient = optimizer.grad(w)?;
/// for (gradient, value) in gradient.iter_mut().zip(optimizer.param(w)?.iter()) {
///     *gradient = *value - 1.0;
/// }
/// gradient.ready()?;
/// let result = optimizer.step()?;
/// assert_eq!(result.step, 1);
/// assert!(optimizer.param(w)?[0] > 0.5);
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// `seal`, `begin`, `micro_step`, `step`, `reduce`, `apply`, `gather`, `read`, `write`, `verify` and `sync_module_buffers`, in stage 3
/// after `begin` also `param` and `param_into`, are collectives: every rank calls them in the same order.
///
/// Views are borrows, so what they show cannot go or change while they live:
///
/// ```compile_fail,E0502
/// # use libzero::{Group, Optimizer, Source};
/// # let group = Group::alone(None)?;
/// # let mut optimizer = Optimizer::new(&group, None)?;
/// # let w = optimizer.add_param::<f32>("w", &[3], None)?;
/// # optimizer.seal()?;
/// # optimizer.begin(Source::Local)?;
/// let view = optimizer.param(w)?;
/// optimizer.step()?;
/// println!("{}", view[0]);
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// Only one thread may use an optimizer at a time: it is [`Send`], but not [`Sync`], and its views stay on their thread. The slices in
/// them may be lent to others.
///
/// With [`Key::Device`](crate::Key::Device), gradients and destinations of parameters may lie on that CUDA device
/// ([`DeviceSlice`](crate::DeviceSlice)); with [`Tier::Device`](crate::Tier::Device) the library's memory does too, and is seen through
/// methods whose names end with `_device`.
///
/// Dropping it waits for parameters that are being gathered ahead, at most for the group's deadline.
#[derive(Debug)]
pub struct Optimizer {
    handle: NonNull<sys::zero_optimizer>,
    /// Of all parameters whose own config says nothing else.
    grad_dtype: Option<DType>,
    params: Vec<Tensor>,
    module_buffers: Vec<ModuleTensor>,
    /// The first begin has passed: acquired parameters are read-only.
    begun: bool,
    /// The algorithm is the caller's own.
    custom: bool,
    /// The CUDA device whose memory may be given; -1 = none.
    device: i64,
    /// The library's memory lies on that device.
    on_device: bool,
    /// Of that device; null = its default stream.
    pub(crate) stream: *mut c_void,
    /// Each save that reads the optimizer's memory while steps go on holds another one.
    readers: Arc<()>,
}

// SAFETY: zero/optimizer.h: "one thread per optimizer at a time", and release on any thread. CUDA takes a stream on any thread.
unsafe impl Send for Optimizer {}

impl Optimizer {
    /// An optimizer without parameters. Not a collective.
    pub fn new(group: &Group, config: Option<&Config>) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: group and config have their handles, and `handle` receives the optimizer.
        check(unsafe { sys::zero_optimizer_create(group.as_ptr(), config_ptr(config), &mut handle) })?;
        Ok(Optimizer {
            handle: NonNull::new(handle).expect("a new optimizer has a handle"),
            grad_dtype: config.and_then(Config::grad_dtype),
            params: Vec::new(),
            module_buffers: Vec::new(),
            begun: false,
            custom: config.map_or(false, Config::is_custom),
            device: config.map_or(-1, Config::device),
            on_device: config.map_or(false, Config::is_on_device),
            stream: ptr::null_mut(),
            readers: Arc::new(()),
        })
    }

    /// Cuts the parameters into shards, agrees with all ranks that they have the same, and allocates everything.
    pub fn seal(&mut self) -> Result<()> {
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_seal(self.as_ptr()) })
    }

    /// Takes over first values, before the first step and again after parameters were written.
    pub fn begin(&mut self, source: Source) -> Result<()> {
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_begin(self.as_ptr(), source.raw()) })?;
        self.begun = true;
        Ok(())
    }

    pub(crate) fn readers(&self) -> Arc<()> {
        Arc::clone(&self.readers)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::zero_optimizer {
        self.handle.as_ptr()
    }
}

impl Drop for Optimizer {
    fn drop(&mut self) {
        // SAFETY: the handle is this optimizer's and is not used again.
        unsafe { sys::zero_optimizer_release(self.handle.as_ptr()) }
    }
}
