//! Scenarios of optimizers.

use libzero::{
    has_feature, Bf16, Config, Divisor, Feature, Group, Initialiser, Key, Memory, Operation, Optimizer, Param, Reduction, Result, Slot, Source,
    SyncRule, Tier,
};

use crate::lines::{bits, error, hash, join, line};
use crate::ranks;
use crate::training::{config, Training, STEPS};
use crate::values::array;

const RANKS: usize = 3;

pub fn print() -> Result<()> {
    for stage in 0..=3 {
        let result = trained(|config| set(config, Key::Stage, stage), |training| training.result())?;
        line(&format!("train-stage{stage}"), &result[0]);
    }
    let result = trained(sgd, |training| training.result())?;
    line("train-sgd", &result[0]);
    line("train-private", &run(|_| Ok(()), private)?[0]);
    for stage in 0..=3 {
        line(&format!("train-bulk{stage}"), &run(|config| set(config, Key::Stage, stage), bulk)?[0]);
    }
    line("train-device", &ranks::run(RANKS, |group, _| on_device(&group))?[0]);
    line("train-clip", &run(|config| set(config, Key::ClipNorm, 1.0), clip)?[0]);
    line("train-micro", &run(|config| set(config, Key::Stage, 2), micro)?[0]);
    line("train-rate", &run(|_| Ok(()), rate)?[0]);
    line("train-skip", &run(|_| Ok(()), skip)?[0]);
    line("train-weights", &run(|config| set(config, Key::Divisor, Divisor::Weights), weights)?[0]);
    line("train-replicas", &run(replicas, synced)?[0]);
    custom()?;
    let hashes = trained(|config| set(config, Key::Stage, 3), |training| Ok(hash(&training.optimizer.param(training.w)?)))?;
    line("train-acquired", join(hashes));
    bf16()?;
    states()?;
    values()?;
    statistics()
}

/// What each rank makes of a training that has begun.
fn run<R: Send>(
    change: impl Fn(&mut Config) -> Result<()> + Sync,
    body: impl Fn(&mut Training<f32>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    ranks::run(RANKS, |group, _| body(&mut Training::begun(&group, Some(&config(&change)?))?))
}

/// What each rank asks of a training that has ended.
fn trained<R: Send>(
    change: impl Fn(&mut Config) -> Result<()> + Sync,
    ask: impl Fn(&mut Training<f32>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    run(change, |training| {
        training.train()?;
        ask(training)
    })
}

fn set<V: libzero::Value>(config: &mut Config, key: Key, value: V) -> Result<()> {
    config.set(key, value).map(|_| ())
}

fn sgd(config: &mut Config) -> Result<()> {
    config.set(Key::Algorithm, "sgd")?.set(Key::Momentum, 0.9)?;
    Ok(())
}

fn private(training: &mut Training<f32>) -> Result<String> {
    for t in 0..STEPS {
        let (b, w) = (training.gradient(training.b, t), training.gradient(training.w, t));
        let (first, second) = w.split_at(w.len() / 2);
        training.optimizer.grad_ready(training.b, 0, &b)?;
        training.optimizer.grad_ready(training.w, first.len(), second)?;
        training.optimizer.grad_ready(training.w, 0, first)?;
        training.optimizer.step()?;
    }
    training.result()
}

/// Everything in a device's memory, if there is a device; with first values that are made there.
fn on_device(group: &Group) -> Result<String> {
    let config = config(|config| {
        if has_feature(Feature::Cuda) {
            config.set(Key::Device, 0)?.set(Key::Tier, Tier::Device)?;
        }
        set(config, Key::Stage, 2)
    })?;
    let mut training = Training::sealed(group, Some(&config))?;
    init_normal(&mut training)?;
    private(&mut training)
}

fn init_normal(training: &mut Training<f32>) -> Result<()> {
    let normal = Initialiser::Normal { mean: 0.5, deviation: 2.0 };
    for param in [training.w, training.b] {
        training.optimizer.init_param(param, normal, 7 + param.id())?;
    }
    training.optimizer.begin(Source::Shards)
}

/// Gradients from memory of its own, of both parameters in one call.
fn bulk(training: &mut Training<f32>) -> Result<String> {
    for t in 0..STEPS {
        let (b, w) = (training.gradient(training.b, t), training.gradient(training.w, t));
        training.optimizer.grads_ready(&[(training.b, &b[..]), (training.w, &w[..])])?;
        training.optimizer.step()?;
    }
    training.result()
}

fn clip(training: &mut Training<f32>) -> Result<String> {
    let last = training.train()?;
    Ok(format!("{} {}", bits(last.grad_norm), training.result()?))
}

fn micro(training: &mut Training<f32>) -> Result<String> {
    training.train_in_micro_steps()?;
    training.result()
}

fn rate(training: &mut Training<f32>) -> Result<String> {
    for t in 0..STEPS {
        training.optimizer.set_f64(0, Key::Lr, 0.01 / (t + 1) as f64)?;
        training.give_gradients(t)?;
        training.optimizer.step()?;
    }
    training.result()
}

fn replicas(config: &mut Config) -> Result<()> {
    config.set(Key::ReplicaRanks, 1)?.set(Key::SyncPeriod, 2)?.set(Key::OuterLr, 0.7)?.set(Key::OuterMomentum, 0.9)?;
    Ok(())
}

/// The period ends in steps 1 and 3, and the run behind step 4.
fn synced(training: &mut Training<f32>) -> Result<String> {
    let mut said = Vec::new();
    for t in 0..STEPS {
        training.give_gradients(t)?;
        said.push(i64::from(training.optimizer.step()?.synced).to_string());
    }
    let last = training.optimizer.sync()?;
    said.push(i64::from(last.synced).to_string());
    said.push(bits(last.spread));
    said.push(training.result()?);
    Ok(said.join(" "))
}

fn skip(training: &mut Training<f32>) -> Result<String> {
    const SKIPPED: usize = 2;
    let mut results = Vec::new();
    for t in 0..STEPS {
        let mut b = training.optimizer.grad(training.b)?;
        b.copy_from_slice(&training.gradient(training.b, t));
        if t == SKIPPED && training.rank == 1 {
            b[0] = f32::NAN;
        }
        b.ready()?;
        let w = training.gradient(training.w, t);
        training.optimizer.grad_ready(training.w, 0, &w)?;
        results.push(training.optimizer.step()?);
    }
    let (at, last) = (results[SKIPPED], results[STEPS - 1]);
    let skipped = i32::from(at.skipped);
    Ok(format!("{} {skipped} {} {}", at.step, last.skipped_total, training.result()?))
}

fn weights(training: &mut Training<f32>) -> Result<String> {
    for t in 0..STEPS {
        training.optimizer.set_weight(training.rank as f64)?;
        training.give_gradients(t)?;
        training.optimizer.step()?;
    }
    training.result()
}

fn custom() -> Result<()> {
    let own = |config: &mut Config| {
        config.set(Key::Algorithm, "custom")?.set(Key::CustomSlots, 1)?;
        Ok(())
    };
    let results = run(own, |training| {
        for t in 0..STEPS {
            training.give_gradients(t)?;
            let mut reduction = training.optimizer.reduce()?;
            update(&mut reduction)?;
            reduction.gather()?;
        }
        Ok((training.result()?, views(&mut training.optimizer)?))
    })?;
    line("train-custom", &results[0].0);
    line("train-custom-views", join(results.iter().map(|(_, views)| views)));
    Ok(())
}

fn update(reduction: &mut Reduction) -> Result<()> {
    for mut view in reduction.views()? {
        let gradients = view.slot::<f32>(Slot::Grad)?;
        let sums = view.slot::<f32>(Slot::Custom)?;
        let params = view.slot::<f32>(Slot::Param)?;
        for ((param, sum), gradient) in params.iter_mut().zip(sums).zip(gradients) {
            *sum += *gradient;
            *param -= 0.125 * *sum;
        }
    }
    Ok(())
}

fn views(optimizer: &mut Optimizer) -> Result<String> {
    let views = optimizer.views()?;
    let texts = views.iter().map(|view| format!("{}:{}:{}", view.param(), view.range().start, view.range().len()));
    Ok(texts.collect::<Vec<_>>().join(","))
}

fn bf16() -> Result<()> {
    let results = ranks::run(RANKS, |group, _| {
        let mut training = Training::<Bf16>::begun(&group, Some(&config(|_| Ok(()))?))?;
        training.train()?;
        let slots = training.optimizer.slots(training.w.id())?;
        let slots = slots.iter().map(|kept| format!("{}:{}:{}", kept.slot.raw(), kept.dtype.raw(), kept.len));
        Ok((training.result()?, join(slots)))
    })?;
    let (result, slots) = &results[0];
    line("precision-bf16", result);
    line("slots", slots);
    Ok(())
}

fn states() -> Result<()> {
    let results = trained(
        |_| Ok(()),
        |training| {
            let (optimizer, w) = (&training.optimizer, training.w.id());
            let scalars = format!("{} {}", bits(optimizer.get_f64(0, Key::Lr)?), optimizer.get_i64(Key::StepCount)?);
            Ok((scalars, training.read_slot::<f32>(w, Slot::SecondMoment, 600)?))
        },
    )?;
    let (scalars, moments) = &results[0];
    line("scalars", scalars);
    line("moments", moments);
    Ok(())
}

fn values() -> Result<()> {
    let results = ranks::run(RANKS, |group, _| {
        let mut training = Training::<f32>::sealed(&group, Some(&config(|_| Ok(()))?))?;
        init_normal(&mut training)?;
        training.result()
    })?;
    line("init-normal", &results[0]);
    let tables = ranks::run(RANKS, |group, rank| {
        let (mut optimizer, table) = table(&group)?;
        optimizer.grad_ready_rows(table, &[rank as i64, 7, rank as i64], &array(30, rank))?;
        optimizer.step()?;
        let mut values = vec![0.0_f32; if rank == 0 { 400 } else { 0 }];
        optimizer.read(table.id(), Slot::Param, 0, &mut values)?;
        Ok(hash(&values))
    })?;
    line("rows", &tables[0]);
    let errors = ranks::run(1, |group, _| {
        let (optimizer, table) = table(&group)?;
        Ok(error(optimizer.grad_ready_rows(table, &[40], &array(10, 0))))
    })?;
    line("rows-error", &errors[0]);
    line("module-buffer", join(ranks::run(RANKS, module_buffer)?));
    let verified = trained(
        |_| Ok(()),
        |training| {
            let result = training.optimizer.verify()?;
            Ok(format!("{} {}", result.found.raw(), result.chunk_count))
        },
    )?;
    line("verify", &verified[0]);
    Ok(())
}

/// A table of which gradients are given by rows, begun with zeros.
fn table(group: &Group) -> Result<(Optimizer, Param<f32>)> {
    let mut by_rows = Config::new()?;
    by_rows.set(Key::Rows, 1)?;
    let mut optimizer = Optimizer::new(group, Some(&config(|_| Ok(()))?))?;
    let table = optimizer.add_param::<f32>("t", &[40, 10], Some(&by_rows))?;
    optimizer.seal()?;
    optimizer.begin(Source::Local)?;
    Ok((optimizer, table))
}

fn module_buffer(group: Group, rank: usize) -> Result<String> {
    let mut optimizer = Optimizer::new(&group, Some(&config(|_| Ok(()))?))?;
    let buffer = optimizer.add_module_buffer::<f32>("statistics", &[9], SyncRule::Average)?;
    optimizer.seal()?;
    optimizer.module_buffer(buffer)?.copy_from_slice(&array(9, rank));
    optimizer.sync_module_buffers()?;
    let values = optimizer.module_buffer(buffer)?;
    Ok(hash(&values))
}

fn statistics() -> Result<()> {
    let traffic = trained(
        |config| set(config, Key::Overlap, 0),
        |training| {
            let sent = |operation| Ok(training.optimizer.traffic(operation)?.sent_elements);
            Ok(format!("{}/{}", sent(Operation::ReduceScatter)?, sent(Operation::AllGather)?))
        },
    )?;
    line("traffic", join(traffic));
    let results = trained(
        |_| Ok(()),
        |training| {
            let formula = training.optimizer.memory(Memory::Total)?.formula_nbytes;
            Ok((formula, training.optimizer.describe()?))
        },
    )?;
    line("memory-formula", join(results.iter().map(|(formula, _)| formula)));
    line("describe", i32::from(results[0].1.len() > 100));
    Ok(())
}
