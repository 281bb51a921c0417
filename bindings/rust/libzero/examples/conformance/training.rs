//! The small training that the scenarios of optimizers vary.

use libzero::{Config, Group, Key, MicroStep, Optimizer, Param, Result, Slot, Source, StepResult};

use crate::lines::hash;
use crate::values::{array, Value};

pub const STEPS: usize = 5;
const W_COUNT: usize = 600;
const B_COUNT: usize = 7;

/// A config with what all these scenarios have, and with what `change` sets.
pub fn config(change: impl FnOnce(&mut Config) -> Result<()>) -> Result<Config> {
    let mut config = Config::new()?;
    config.set(Key::BucketBytes, 1024)?;
    change(&mut config)?;
    Ok(config)
}

/// An optimizer with the parameters `w` and `b`.
pub struct Training<T: Value> {
    pub optimizer: Optimizer,
    pub w: Param<T>,
    pub b: Param<T>,
    pub rank: usize,
}

impl<T: Value> Training<T> {
    /// Not sealed.
    pub fn built(group: &Group, config: Option<&Config>) -> Result<Self> {
        let mut optimizer = Optimizer::new(group, config)?;
        let w = optimizer.add_param("w", &[20, 30], None)?;
        let b = optimizer.add_param("b", &[7], None)?;
        let rank = group.rank()?;
        Ok(Training { optimizer, w, b, rank })
    }

    /// Sealed.
    pub fn sealed(group: &Group, config: Option<&Config>) -> Result<Self> {
        let mut training = Self::built(group, config)?;
        training.optimizer.seal()?;
        Ok(training)
    }

    /// With first values.
    pub fn begun(group: &Group, config: Option<&Config>) -> Result<Self> {
        let mut training = Self::sealed(group, config)?;
        training.begin()?;
        Ok(training)
    }

    /// First values of rank 0.
    pub fn begin(&mut self) -> Result<()> {
        if self.rank == 0 {
            for (param, count) in self.params() {
                self.optimizer.param_mut(param)?.copy_from_slice(&array(count, param.id() as usize));
            }
        }
        self.optimizer.begin(Source::Root)
    }

    /// The parameters in the order of their ids, and their elements.
    fn params(&self) -> [(Param<T>, usize); 2] {
        [(self.w, W_COUNT), (self.b, B_COUNT)]
    }

    /// The gradient of `param` in step `t`.
    pub fn gradient(&self, param: Param<T>, t: usize) -> Vec<T> {
        let (_, count) = self.params()[param.id() as usize];
        array(count, 10 * t + 3 * param.id() as usize + self.rank)
    }

    /// Fills acquired memory with the gradients of step `t`.
    pub fn give_gradients(&self, t: usize) -> Result<()> {
        for param in [self.b, self.w] {
            let mut view = self.optimizer.grad(param)?;
            view.copy_from_slice(&self.gradient(param, t));
            view.ready()?;
        }
        Ok(())
    }

    /// All steps; the result of the last.
    pub fn train(&mut self) -> Result<StepResult> {
        for t in 0..STEPS - 1 {
            self.give_gradients(t)?;
            self.optimizer.step()?;
        }
        self.give_gradients(STEPS - 1)?;
        self.optimizer.step()
    }

    /// As `train`, each step in two micro-steps with the same gradients.
    pub fn train_in_micro_steps(&mut self) -> Result<()> {
        for t in 0..STEPS {
            for kind in [MicroStep::Local, MicroStep::Last] {
                self.optimizer.micro_step(kind)?;
                self.give_gradients(t)?;
            }
            self.optimizer.step()?;
        }
        Ok(())
    }

    /// Hashes of both parameters on rank 0.
    pub fn result(&self) -> Result<String> {
        Ok(format!("{} {}", self.read(self.w)?, self.read(self.b)?))
    }

    fn read(&self, param: Param<T>) -> Result<String> {
        let (_, count) = self.params()[param.id() as usize];
        self.read_slot::<T>(param.id(), Slot::Param, count)
    }

    /// The hash of a slot on rank 0; the others read nothing.
    pub fn read_slot<S: Value>(&self, id: i64, slot: Slot, count: usize) -> Result<String> {
        let mut values = vec![S::default(); if self.rank == 0 { count } else { 0 }];
        self.optimizer.read(id, slot, 0, &mut values)?;
        Ok(hash(&values))
    }
}
