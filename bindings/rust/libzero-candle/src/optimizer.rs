//! The optimizer: gradients in, steps, new values out.

use candle_core::backprop::GradStore;
use candle_core::{bail, Result, Tensor, Var};
use libzero::{Group, Key, Optimizer, Source, StepResult};

use crate::entries::{register, Entry};
use crate::error::OrCandle;
use crate::settings::Settings;

/// An optimizer of candle whose memory and work are shared by ranks.
///
/// `new`, `step`, [`step_owned`](ShardedOptimizer::step_owned), `backward_step`, [`save`](ShardedOptimizer::save),
/// [`load`](ShardedOptimizer::load) and [`refresh`](ShardedOptimizer::refresh) are collectives: all ranks call them in the same order.
///
/// - `new` takes vars on the CPU, and gives those of all ranks the values of rank 0.
/// - `step` leaves a var without gradient as it is, if no rank has one for it; if some ranks have one, that of the others counts as zero.
///   As in PyTorch, the bias correction of such a var counts its own updates, where candle counts all steps.
/// - `backward_step` also multiplies the loss by [`loss_scale`](ShardedOptimizer::loss_scale).
/// - `set_learning_rate` is for the vars of parameter set 0 ([`set_f64`](ShardedOptimizer::set_f64) for others), the same on all ranks. A
///   rate that libzero refuses is an error of the next step.
///
/// After an error of `step` the vars hold their old values, or, if ranks were lost meanwhile, those of an earlier step or of this one;
/// [`load`](ShardedOptimizer::load) a save in a new run then.
///
/// Only one thread may use it at a time: it is [`Send`], but not [`Sync`].
#[derive(Debug)]
pub struct ShardedOptimizer {
    optimizer: Optimizer,
    group: Group,
    entries: Vec<Entry>,
    learning_rate: f64,
    loss_scale: f64,
    last: Option<StepResult>,
}

impl candle_nn::Optimizer for ShardedOptimizer {
    type Config = Settings;

    fn new(vars: Vec<Var>, mut settings: Settings) -> Result<Self> {
        let group = match settings.group.take() {
            Some(group) => group,
            None => Group::env(None).or_candle()?,
        };
        let mut optimizer = Optimizer::new(&group, Some(&settings.keys)).or_candle()?;
        let entries = register(&mut optimizer, vars, &settings)?;
        optimizer.seal().or_candle()?;
        let mut made = ShardedOptimizer { optimizer, group, entries, learning_rate: 0.0, loss_scale: 1.0, last: None };
        made.refresh()?;
        made.ask()?;
        Ok(made)
    }

    fn step(&mut self, grads: &GradStore) -> Result<()> {
        self.check(grads)?;
        for entry in self.entries.iter().rev() {
            if let Some(grad) = grads.get(&entry.var) {
                entry.give(&self.optimizer, grad)?;
            }
        }
        self.finish()
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, lr: f64) {
        self.learning_rate = lr;
    }

    fn backward_step(&mut self, loss: &Tensor) -> Result<()> {
        let grads = if self.loss_scale == 1.0 { loss.backward()? } else { (loss * self.loss_scale)?.backward()? };
        self.step_owned(grads)
    }
}

impl ShardedOptimizer {
    /// A step that frees each gradient once libzero has it. With a loss scale, gradients are those of the loss times
    /// [`loss_scale`](ShardedOptimizer::loss_scale).
    pub fn step_owned(&mut self, mut grads: GradStore) -> Result<()> {
        self.check(&grads)?;
        for entry in self.entries.iter().rev() {
            if let Some(grad) = grads.remove(&entry.var) {
                entry.give(&self.optimizer, &grad)?;
            }
        }
        drop(grads);
        self.finish()
    }

    /// This rank's rows of a batch that all ranks have. The number of rows must be a multiple of the number of ranks, because gradients of
    /// ranks count alike.
    pub fn share(&self, batch: &Tensor) -> Result<Tensor> {
        let (rank, size) = (self.group.rank().or_candle()?, self.group.size().or_candle()?);
        let count = batch.dim(0)?;
        if count % size != 0 {
            bail!("the batch has {count} rows, which {size} ranks cannot share evenly; take a multiple of {size}")
        }
        batch.narrow(0, rank * (count / size), count / size)
    }

    /// Saves the parameters, states and scalars into a folder of its own inside `folder`, which must exist. A collective.
    pub fn save(&mut self, folder: &str) -> Result<()> {
        self.optimizer.save(folder).or_candle()
    }

    /// Loads the newest valid save in `folder` into optimizer and vars; false, and nothing changes, if there is none. The number of ranks
    /// and the stage may be others than those of the save. A collective.
    pub fn load(&mut self, folder: &str) -> Result<bool> {
        let found = self.optimizer.resume(folder).or_candle()?;
        if found {
            self.take()?;
            self.ask()?;
        }
        Ok(found)
    }

    /// Takes the values that the vars of rank 0 have now, and gives them to all ranks: after the program itself changed vars, for example
    /// by `VarMap::load`. Optimizer states stay. A collective between steps.
    pub fn refresh(&mut self) -> Result<()> {
        let mine = self.group.rank().or_candle()? == 0;
        for entry in &self.entries {
            entry.write(&mut self.optimizer, mine)?;
        }
        self.optimizer.begin(Source::Shards).or_candle()?;
        self.take()
    }

    /// Sets a hyper-parameter of a parameter set from the next step on, the same on all ranks. `key` is [`Key::Lr`] or one that follows it,
    /// or [`Key::LossScale`].
    pub fn set_f64(&mut self, set: i64, key: Key, value: f64) -> Result<()> {
        self.optimizer.set_f64(set, key, value).or_candle()?;
        self.ask()
    }

    /// What `backward_step` multiplies the next loss by; 1 without a loss scale.
    pub fn loss_scale(&self) -> f64 {
        self.loss_scale
    }

    /// The outcome of the last step: whether it was skipped, and with [`Key::GradNorm`] or [`Key::ClipNorm`] the norm of its gradient.
    pub fn last_step(&self) -> Option<StepResult> {
        self.last
    }

    /// The ranks.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The optimizer below, for its memory, traffic and description.
    pub fn libzero(&self) -> &Optimizer {
        &self.optimizer
    }

    fn check(&self, grads: &GradStore) -> Result<()> {
        self.entries.iter().filter_map(|entry| grads.get(&entry.var).map(|grad| entry.check(grad))).collect()
    }

    /// The step of all ranks, after the gradients of this one were given.
    fn finish(&mut self) -> Result<()> {
        if self.learning_rate != self.optimizer.get_f64(0, Key::Lr).or_candle()? {
            self.optimizer.set_f64(0, Key::Lr, self.learning_rate).or_candle()?;
        }
        let result = self.optimizer.step().or_candle()?;
        self.last = Some(result);
        self.loss_scale = result.loss_scale;
        if result.skipped {
            return Ok(());
        }
        self.take()
    }

    /// Copies libzero's values into the vars.
    fn take(&self) -> Result<()> {
        self.entries.iter().try_for_each(|entry| entry.take(&self.optimizer))
    }

    /// Asks for what libzero may have changed.
    fn ask(&mut self) -> Result<()> {
        self.learning_rate = self.optimizer.get_f64(0, Key::Lr).or_candle()?;
        self.loss_scale = self.optimizer.get_f64(0, Key::LossScale).or_candle()?;
        Ok(())
    }
}
