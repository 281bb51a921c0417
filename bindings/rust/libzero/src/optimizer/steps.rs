//! Steps, whole and in parts, and micro-steps.

use std::ops::Deref;

use libzero_sys as sys;

use crate::enums::MicroStep;
use crate::error::{check, Result};
use crate::optimizer::views::View;
use crate::optimizer::Optimizer;
use crate::stats::init;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Steps applied so far, this one included.
    pub step: i64,
    /// A non-finite gradient on some rank made all ranks skip this step.
    pub skipped: bool,
    /// Steps skipped so far.
    pub skipped_total: i64,
    /// Elements that this rank gave no gradient for; they counted as zero.
    pub unfilled_count: i64,
    /// Norm of the reduced gradient, with [`Key::GradNorm`](crate::Key::GradNorm) or [`Key::ClipNorm`](crate::Key::ClipNorm), otherwise 0.
    pub grad_norm: f64,
    /// What the caller multiplies the loss of the next step by.
    pub loss_scale: f64,
    /// The largest reason that a rank gave to [`Optimizer::request_stop`]; 0: none did.
    pub stop_reason: i64,
    /// Replicas were synchronised in this step, or since by [`Optimizer::sync`].
    pub synced: bool,
    /// With `synced`: how far replicas agreed, 1 = all changed alike; otherwise 0.
    pub spread: f64,
}

impl From<sys::zero_step_result> for StepResult {
    fn from(result: sys::zero_step_result) -> Self {
        StepResult {
            step: result.step,
            skipped: result.skipped != 0,
            skipped_total: result.skipped_total,
            unfilled_count: result.unfilled_count,
            grad_norm: result.grad_norm,
            loss_scale: result.loss_scale,
            stop_reason: result.stop_reason,
            synced: result.synced != 0,
            spread: result.spread,
        }
    }
}

impl Optimizer {
    /// One step: reduce, vote, apply, gather. Gradients never made ready count as zero. All ranks apply, or all skip, or all get an error.
    pub fn step(&mut self) -> Result<StepResult> {
        let mut result = init(sys::zero_step_result_init)?;
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives, and `result` knows its own size.
        check(unsafe { sys::zero_optimizer_step(self.as_ptr(), self.stream, &mut result) })?;
        Ok(StepResult::from(result))
    }

    /// The first part of a step: sums the gradients and votes. What is returned takes the other parts.
    ///
    /// ```
    /// use libzero::{Config, Group, Key, Optimizer, Slot, Source};
    ///
    /// let group = Group::alone(None)?;
    /// let mut config = Config::new()?;
    /// config.set(Key::Algorithm, "custom")?.set(Key::CustomSlots, 1)?;
    /// let mut optimizer = Optimizer::new(&group, Some(&config))?;
    /// let w = optimizer.add_param::<f32>("w", &[4], None)?;
    /// optimizer.seal()?;
    /// optimizer.begin(Source::Local)?;
    /// optimizer.grad_ready(w, 0, &[1.0, 2.0, 3.0, 4.0])?;
    ///
    /// let mut reduction = optimizer.reduce()?;
    /// if !reduction.result().skipped {
    ///     for mut view in reduction.views()? {
    ///         let gradient = view.slot::<f32>(Slot::Grad)?;
    ///         let momentum = view.slot::<f32>(Slot::Custom)?;
    ///         let values = view.slot::<f32>(Slot::Param)?;
    ///         for ((value, momentum), gradient) in values.iter_mut().zip(momentum).zip(gradient) {
    ///             *momentum = 0.5 * *momentum + *gradient;
    ///             *value -= 0.25 * *momentum;
    ///         }
    ///     }
    /// }
    /// reduction.gather()?;
    /// assert_eq!(optimizer.param(w)?[..], [-0.25, -0.5, -0.75, -1.0]);
    /// # Ok::<(), libzero::Error>(())
    /// ```
    pub fn reduce(&mut self) -> Result<Reduction<'_>> {
        let mut result = init(sys::zero_step_result_init)?;
        // SAFETY: as in `step`.
        check(unsafe { sys::zero_optimizer_reduce(self.as_ptr(), self.stream, &mut result) })?;
        Ok(Reduction { optimizer: self, result: StepResult::from(result) })
    }

    /// Brings replicas together ([`Key::ReplicaRanks`](crate::Key::ReplicaRanks)), before a save or an evaluation. Where they are together
    /// already nothing is done.
    pub fn sync(&mut self) -> Result<StepResult> {
        let mut result = init(sys::zero_step_result_init)?;
        // SAFETY: as in `step`.
        check(unsafe { sys::zero_optimizer_sync(self.as_ptr(), self.stream, &mut result) })?;
        Ok(StepResult::from(result))
    }

    /// Begins a micro-step: gradients of a part of the step's batch. A step of one micro-step needs no call.
    pub fn micro_step(&mut self, kind: MicroStep) -> Result<()> {
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_micro_step(self.as_ptr(), kind.raw(), self.stream) })
    }

    /// This rank's weight of the step under way, or behind [`micro_step`](Optimizer::micro_step) of that micro-step, before its first
    /// gradient is ready; 1 again after each. Only with [`Divisor::Weights`](crate::Divisor::Weights).
    pub fn set_weight(&mut self, weight: f64) -> Result<()> {
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_set_weight(self.as_ptr(), weight) })
    }
}

/// A step whose gradients are reduced ([`Optimizer::reduce`]). [`gather`](Reduction::gather) ends it on all ranks; where that is left out,
/// the optimizer takes no other step.
///
/// It is [`Send`], but not [`Sync`], as the optimizer that it borrows.
#[derive(Debug)]
#[must_use = "the step ends with gather"]
pub struct Reduction<'a> {
    optimizer: &'a mut Optimizer,
    result: StepResult,
}

impl Reduction<'_> {
    /// As that of a whole step.
    pub fn result(&self) -> StepResult {
        self.result
    }

    /// Updates this rank's shard, in stage 0 everything, with the built-in algorithm, once; nothing when the vote was to skip.
    pub fn apply(&mut self) -> Result<()> {
        // SAFETY: the handle is the optimizer's; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_apply(self.optimizer.as_ptr(), self.optimizer.stream) })
    }

    /// The pieces of all parameters that this rank updates, with gradients and parameters, for an update of the caller's own.
    pub fn views(&mut self) -> Result<Vec<View<'_>>> {
        View::all(self.optimizer, true)
    }

    /// Makes the new parameters visible and ends the step.
    pub fn gather(self) -> Result<()> {
        // SAFETY: the handle is the optimizer's; `self` says that no view lives.
        check(unsafe { sys::zero_optimizer_gather(self.optimizer.as_ptr(), self.optimizer.stream) })
    }
}

/// For what only asks: [`Optimizer::read`] of reduced gradients, statistics.
impl Deref for Reduction<'_> {
    type Target = Optimizer;

    fn deref(&self) -> &Optimizer {
        self.optimizer
    }
}
