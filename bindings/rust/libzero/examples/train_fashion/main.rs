//! Trains a classifier on Fashion-MNIST, sharded by libzero. Ranks are threads, or under a launcher
//! the processes that it started.

mod arguments;
mod data;
mod model;
mod problem;
mod threads;

use arguments::Arguments;
use data::{Data, Losses, Sampler};
use libzero::{Config, Divisor, Group, Key, Optimizer, Param, ReduceOp, Source};
use model::{first_values, hash, Model, FIRST_HASH, TENSORS};
use problem::Result;

struct Run {
    stage: i64,
    epochs: usize,
    batch: usize,
    lr: f64,
    seed: u64,
    losses: String,
    data: Data,
}

struct Trainer<'a> {
    run: &'a Run,
    group: &'a Group,
    optimizer: Optimizer,
    params: Vec<Param<f32>>,
    model: Model,
}

impl<'a> Trainer<'a> {
    fn new(run: &'a Run, group: &'a Group) -> Result<Self> {
        let mut config = Config::new()?;
        config.set(Key::Stage, run.stage)?.set(Key::BucketBytes, 65536)?.set(Key::Divisor, Divisor::Weights)?;
        let mut optimizer = Optimizer::new(group, Some(&config))?;
        let params = TENSORS.iter().map(|(name, shape)| optimizer.add_param(name, shape, None)).collect::<libzero::Result<Vec<_>>>()?;
        optimizer.seal()?;
        if group.rank()? == 0 {
            for (tensor, &param) in params.iter().enumerate() {
                first_values(tensor, run.seed, &mut optimizer.param_mut(param)?);
            }
        }
        optimizer.begin(Source::Root)?;
        Ok(Trainer { run, group, optimizer, params, model: Model::new(run.batch / group.size()? + 32) })
    }

    fn forward(&mut self) -> Result<()> {
        for (layer, params) in self.params.chunks(2).enumerate() {
            self.model.forward(layer, &self.optimizer.param(params[0])?, &self.optimizer.param(params[1])?);
        }
        Ok(())
    }

    /// A rank without samples acquires like the others, because that is a collective in stage 3, but gives no gradients.
    fn backward(&mut self, samples: usize) -> Result<()> {
        for (layer, params) in self.params.chunks(2).enumerate().rev() {
            let (weight, bias) = (params[0], params[1]);
            let (values, _) = (self.optimizer.param(weight)?, self.optimizer.param(bias)?);
            if samples > 0 {
                let (mut weight_grad, mut bias_grad) = (self.optimizer.grad(weight)?, self.optimizer.grad(bias)?);
                self.model.backward(layer, &values, &mut weight_grad, &mut bias_grad);
                bias_grad.ready()?;
                weight_grad.ready()?;
            }
        }
        Ok(())
    }

    /// The mean loss over the samples of all ranks, each of which has its share of them.
    fn step(&mut self, samples: &[usize], lr: f64) -> Result<f64> {
        let own = &samples[self.group.share(samples.len(), self.group.rank()?)?];
        self.optimizer.set_f64(0, Key::Lr, lr)?;
        self.optimizer.set_weight(own.len() as f64)?;
        self.model.load(&self.run.data.train, own.iter().copied());
        self.forward()?;
        let mut loss = [self.model.loss().0];
        self.backward(own.len())?;
        self.group.all_reduce_in_place(&mut loss, ReduceOp::Sum)?;
        if self.optimizer.step()?.skipped {
            return Err("a gradient is not finite; try a smaller --lr".into());
        }
        Ok(loss[0] / samples.len() as f64)
    }

    /// All steps, with a learning rate that falls to 0 along a line; then what came of them.
    fn train(&mut self) -> Result<()> {
        let rank = self.group.rank()?;
        let mut sampler = Sampler::new(self.run.data.train.len(), self.run.batch, self.run.seed);
        let mut losses = Losses::create(if rank == 0 { &self.run.losses } else { "" })?;
        let steps = sampler.steps_per_epoch() * self.run.epochs;
        for step in 0..steps {
            losses.write(self.step(sampler.batch(step), self.run.lr * (1.0 - step as f64 / steps as f64))?)?;
        }
        let accuracy = self.accuracy()?;
        let whole = |sum, &param: &_| self.optimizer.param(param).map(|values| hash(sum, &values));
        let sum = self.params.iter().try_fold(FIRST_HASH, whole)?;
        if rank == 0 {
            println!("accuracy={accuracy:.2} hash={sum:016x}");
        }
        Ok(())
    }

    /// Percent of the test images classified correctly. All ranks take as many batches as the largest share needs.
    fn accuracy(&mut self) -> Result<f64> {
        let (count, size) = (self.run.data.test.len(), self.group.size()?);
        let own = self.group.share(count, self.group.rank()?)?;
        let mut correct = [0];
        for done in (0..(count + size - 1) / size).step_by(self.model.capacity) {
            self.model.load(&self.run.data.test, own.clone().skip(done).take(self.model.capacity));
            self.forward()?;
            correct[0] += self.model.loss().1;
        }
        self.group.all_reduce_in_place(&mut correct, ReduceOp::Sum)?;
        Ok(100.0 * correct[0] as f64 / count as f64)
    }
}

/// One rank, in its own thread or process. A rank that fails aborts the group, so that the others do not wait for it.
fn rank_main(run: &Run, open: impl FnOnce(&Config) -> libzero::Result<Group>) -> Result<()> {
    let group = open(Config::new()?.set(Key::StagingBytes, 65536)?)?;
    let outcome = Trainer::new(run, &group).and_then(|mut trainer| trainer.train());
    if let Err(problem) = &outcome {
        group.abort(&problem.text)?;
    }
    outcome
}

fn main() -> Result<()> {
    let mut given = Arguments::new(std::env::args().skip(1));
    let folder = given.value("--data", String::from("/usr/share/datasets/fashion-mnist"))?;
    let launcher = Group::launcher()?;
    if !launcher.is_empty() && given.has("--ranks") {
        let count = std::env::var(&launcher)?;
        let reason = "is for ranks that this program starts, but a launcher has started them";
        return Err(format!("--ranks {reason} ({launcher} is {count})").into());
    }
    let (ranks, limit) = (given.count("--ranks", 4)?, given.value("--limit", 0)?);
    let mut run = Run {
        stage: given.value("--stage", 3)?,
        epochs: given.count("--epochs", 1)?,
        batch: given.count("--batch", 192)?,
        lr: given.value("--lr", 0.004)?,
        seed: given.value("--seed", 1)?,
        losses: given.value("--losses", String::new())?,
        data: Data::default(),
    };
    given.finish()?;
    run.data = Data::read(&folder, limit)?;
    if !launcher.is_empty() {
        return rank_main(&run, |config| Group::env(Some(config)));
    }
    let name = format!("train_fashion.{}", std::process::id());
    threads::run(ranks, |rank| rank_main(&run, |config| Group::local(&name, rank, ranks, Some(config))))
}
