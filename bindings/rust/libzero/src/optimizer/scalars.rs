//! Hyper-parameters, and scalars of the run.

use libzero_sys as sys;

use crate::error::{check, Result};
use crate::key::Key;
use crate::optimizer::Optimizer;

impl Optimizer {
    /// Sets a hyper-parameter of a parameter set, 0 or what [`add_set`](Optimizer::add_set) gave, from the next step on; the same on all
    /// ranks. `key` is [`Key::Lr`] or one that follows it, or [`Key::LossScale`].
    pub fn set_f64(&mut self, set: i64, key: Key, value: f64) -> Result<()> {
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_set_f64(self.as_ptr(), set, key.raw(), value) })
    }

    /// A hyper-parameter of a parameter set.
    pub fn get_f64(&self, set: i64, key: Key) -> Result<f64> {
        let mut value = 0.0;
        // SAFETY: the handle is the optimizer's, and the result goes to a local.
        check(unsafe { sys::zero_optimizer_get_f64(self.as_ptr(), set, key.raw(), &mut value) })?;
        Ok(value)
    }

    /// Sets a scalar of the run: [`Key::StepCount`] or one that follows it; the same on all ranks.
    pub fn set_i64(&mut self, key: Key, value: i64) -> Result<()> {
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_set_i64(self.as_ptr(), key.raw(), value) })
    }

    /// A scalar of the run.
    pub fn get_i64(&self, key: Key) -> Result<i64> {
        let mut value = 0;
        // SAFETY: the handle is the optimizer's, and the result goes to a local.
        check(unsafe { sys::zero_optimizer_get_i64(self.as_ptr(), key.raw(), &mut value) })?;
        Ok(value)
    }
}
