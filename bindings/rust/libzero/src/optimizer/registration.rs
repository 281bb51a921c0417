//! What an optimizer has before it is sealed, and the making of first values.

use std::cell::RefCell;

use libzero_sys as sys;

use crate::config::{c_text, config_ptr, Config};
use crate::element::Element;
use crate::enums::{DType, SyncRule};
use crate::error::{check, Result};
use crate::group::Group;
use crate::optimizer::module_buffers::ModuleBuffer;
use crate::optimizer::params::Param;
use crate::optimizer::tensors::{count_of, ModuleTensor, Tensor};
use crate::optimizer::Optimizer;

/// How [`Optimizer::init_param`] makes values. Each depends on seed, parameter and place of the element alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initialiser {
    /// The same value everywhere.
    Constant(f64),
    /// Uniform in `low .. high`.
    Uniform {
        /// The least.
        low: f64,
        /// What values stay below.
        high: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
}

impl Initialiser {
    /// The kind and both arguments in the C API.
    fn raw(self) -> (i32, f64, f64) {
        match self {
            Initialiser::Constant(value) => (sys::ZERO_INITIALISER_CONSTANT, value, 0.0),
            Initialiser::Uniform { low, high } => (sys::ZERO_INITIALISER_UNIFORM, low, high),
            Initialiser::Normal { mean, deviation } => (sys::ZERO_INITIALISER_NORMAL, mean, deviation),
        }
    }
}

/// Before [`seal`](Optimizer::seal), the same on all ranks. None of these is a collective.
impl Optimizer {
    /// Registers a tensor. `config` has keys of single parameters ([`Key::Set`](crate::Key::Set) and those that follow it).
    ///
    /// Where [`Key::GradDtype`](crate::Key::GradDtype) says that gradients have another type than parameters,
    /// [`Param::with_gradient`] names it.
    pub fn add_param<T: Element>(&mut self, name: &str, shape: &[i64], config: Option<&Config>) -> Result<Param<T>> {
        let c_name = c_text("name", name)?;
        let mut id = 0;
        // SAFETY: handle and config are alive, the name ends with a NUL, and `shape` is a slice.
        check(unsafe {
            sys::zero_optimizer_add_param(
                self.as_ptr(),
                config_ptr(config),
                c_name.as_ptr(),
                T::DTYPE.raw(),
                shape.as_ptr(),
                shape.len() as i64,
                &mut id,
            )
        })?;
        let holder = config.and_then(Config::tied_to).map_or(self.params.len(), |id| id as usize);
        self.params.push(Tensor {
            name: name.into(),
            dtype: T::DTYPE,
            grad_dtype: self.grad_dtype_of(T::DTYPE, config, holder),
            count: count_of(shape),
            width: count_of(shape.get(1..).unwrap_or(&[])),
            holder,
            values: RefCell::new(()),
            gradient: RefCell::new(false),
        });
        Ok(Param::new(id))
    }

    /// Makes a parameter set: parameters that share an algorithm and hyper-parameters. Returns the value of
    /// [`Key::Set`](crate::Key::Set) for its parameters.
    pub fn add_set(&mut self, config: &Config) -> Result<i64> {
        let mut set = 0;
        // SAFETY: optimizer and config have their handles.
        check(unsafe { sys::zero_optimizer_add_set(self.as_ptr(), config.as_ptr(), &mut set) })?;
        Ok(set)
    }

    /// Registers a tensor that is no parameter but belongs to the model: statistics of a batch normalisation and the like.
    pub fn add_module_buffer<T: Element>(&mut self, name: &str, shape: &[i64], rule: SyncRule) -> Result<ModuleBuffer<T>> {
        let c_name = c_text("name", name)?;
        let mut id = 0;
        // SAFETY: as in `add_param`.
        check(unsafe {
            sys::zero_optimizer_add_module_buffer(
                self.as_ptr(),
                c_name.as_ptr(),
                T::DTYPE.raw(),
                shape.as_ptr(),
                shape.len() as i64,
                rule.raw(),
                &mut id,
            )
        })?;
        self.module_buffers.push(ModuleTensor { name: name.into(), dtype: T::DTYPE, values: RefCell::new(()) });
        Ok(ModuleBuffer::new(id))
    }

    /// Gives the order in which gradients become ready: every parameter's id once. Default: last registered first.
    pub fn set_order(&mut self, ids: &[i64]) -> Result<()> {
        // SAFETY: the handle is the optimizer's, and `ids` is a slice.
        check(unsafe { sys::zero_optimizer_set_order(self.as_ptr(), ids.as_ptr(), ids.len() as i64) })
    }

    /// Gives the order in which the first step of stage 3 acquires parameters, so that they are gathered ahead.
    pub fn set_gather_order(&mut self, ids: &[i64]) -> Result<()> {
        // SAFETY: the handle is the optimizer's, and `ids` is a slice.
        check(unsafe { sys::zero_optimizer_set_gather_order(self.as_ptr(), ids.as_ptr(), ids.len() as i64) })
    }

    /// Names the ranks over which the model is cut; norm, clipping and the decision to skip are then those of the whole model.
    pub fn set_model_group(&mut self, group: &Group) -> Result<()> {
        // SAFETY: optimizer and group have their handles.
        check(unsafe { sys::zero_optimizer_set_model_group(self.as_ptr(), group.as_ptr()) })
    }

    /// Fills a parameter with first values, each rank only what it updates of it. After [`seal`](Optimizer::seal) and before a
    /// [`begin`](Optimizer::begin) from [`Source::Shards`](crate::Source::Shards).
    pub fn init_param<T, G>(&mut self, param: Param<T, G>, initialiser: Initialiser, seed: i64) -> Result<()> {
        let (kind, a, b) = initialiser.raw();
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_init_param(self.as_ptr(), param.id(), kind, a, b, seed) })
    }

    /// What libzero keeps gradients of a new parameter in: that of the one it is tied to, of its config, of the optimizer's config.
    fn grad_dtype_of(&self, dtype: DType, config: Option<&Config>, holder: usize) -> DType {
        const OF_THE_PARAMETER: DType = DType::from_raw(0);
        if let Some(holder) = self.params.get(holder) {
            return holder.grad_dtype;
        }
        match config.and_then(Config::grad_dtype).or(self.grad_dtype) {
            None | Some(OF_THE_PARAMETER) => dtype,
            Some(chosen) => chosen,
        }
    }
}
