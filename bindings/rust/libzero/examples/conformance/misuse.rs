//! Scenarios of errors and misuse.

use std::sync::Barrier;
use std::time::Duration;

use libzero::{check, sys, Buffer, Config, Group, Key, Optimizer, ReduceOp, Result};

use crate::lines::{error, join, line, status};
use crate::ranks;
use crate::training::Training;

pub fn print() -> Result<()> {
    let group = Group::alone(None)?;
    order(&group)?;
    registration(&group)?;
    ranges(&group)?;
    closed()?;
    failures()?;
    release_order()
}

fn order(group: &Group) -> Result<()> {
    let mut training = Training::<f32>::sealed(group, None)?;
    line("step-before-begin", error(training.optimizer.step()));
    line("seal-twice", error(training.optimizer.seal()));
    line("param-after-seal", error(training.optimizer.add_param::<f32>("late", &[7], None)));
    Ok(())
}

fn registration(group: &Group) -> Result<()> {
    let mut optimizer = Optimizer::new(group, None)?;
    line("param-dtype", error(optimizer.add_param::<i32>("c", &[20, 30], None)));
    line("param-shape", error(optimizer.add_param::<f32>("c", &[-1], None)));
    optimizer.add_param::<f32>("w", &[20, 30], None)?;
    line("param-name-twice", error(optimizer.add_param::<f32>("w", &[20, 30], None)));
    let mut config = Config::new()?;
    config.set(Key::Algorithm, "nothing")?;
    line("unknown-algorithm", error(Optimizer::new(group, Some(&config))));
    Ok(())
}

fn ranges(group: &Group) -> Result<()> {
    let mut training = Training::<f32>::begun(group, None)?;
    let (optimizer, b) = (&mut training.optimizer, training.b);
    optimizer.grad_ready(b, 0, &[0.0; 7])?;
    line("gradient-twice", error(optimizer.grad_ready(b, 0, &[0.0; 7])));
    line("gradient-range", error(optimizer.grad_ready(b, 0, &[0.0; 8])));
    line("read-range", error(optimizer.read(b.id(), libzero::Slot::Param, 0, &mut [0f32; 8])));
    line("rate-unknown", error(optimizer.set_f64(0, Key::Stage, 1.0)));
    line("trace-off", error(optimizer.trace()));
    Ok(())
}

/// What is released cannot be asked in safe Rust, so this goes through the C API.
fn closed() -> Result<()> {
    let (mut group, mut optimizer) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (mut size, null) = (0, std::ptr::null_mut());
    // SAFETY: outputs are locals, and a released handle is an error.
    let statuses = unsafe {
        check(sys::zero_group_create_local(null, 0, 1, null.cast(), &mut group))?;
        check(sys::zero_optimizer_create(group, null.cast(), &mut optimizer))?;
        sys::zero_optimizer_release(optimizer);
        sys::zero_group_release(group);
        let size = status(check(sys::zero_group_size(group, &mut size)));
        [size, status(check(sys::zero_optimizer_step(optimizer, null.cast(), null.cast())))]
    };
    line("closed", join(statuses));
    Ok(())
}

fn failures() -> Result<()> {
    let mismatch = ranks::run(3, |group, rank| {
        let send = vec![0f32; if rank == 0 { 10 } else { 11 }];
        Ok(status(group.all_reduce(&send, &mut send.clone(), ReduceOp::Sum)))
    })?;
    line("mismatch", join(mismatch));
    line(
        "timeout",
        two_ranks(|group| {
            group.set_deadline(Duration::from_millis(200))?;
            group.barrier()
        })?,
    );
    let aborted = ranks::run(2, |group, rank| {
        if rank == 0 {
            group.abort("conformance")?;
        }
        Ok(status(group.barrier()))
    })?;
    line("aborted", aborted[1]);
    let left = ranks::run(2, |group, rank| {
        if rank == 1 {
            return Ok("");
        }
        Ok(status(group.barrier()))
    })?;
    line("peer-left", left[0]);
    Ok(())
}

/// What rank 0 meets while rank 1 keeps its group and does nothing.
fn two_ranks(act: impl Fn(&Group) -> Result<()> + Sync) -> Result<&'static str> {
    let end = Barrier::new(2);
    let statuses = ranks::run(2, |group, rank| {
        let outcome = if rank == 0 { act(&group) } else { Ok(()) };
        end.wait();
        Ok(status(outcome))
    })?;
    Ok(statuses[0])
}

fn release_order() -> Result<()> {
    let group = Group::alone(None)?;
    let buffer = Buffer::<f32>::new(&group, 1000, None)?;
    let mut training = Training::<f32>::begun(&group, None)?;
    training.give_gradients(0)?;
    let outcome = training.optimizer.step();
    drop(group);
    drop(buffer);
    drop(training);
    line("release-order", status(outcome));
    Ok(())
}
