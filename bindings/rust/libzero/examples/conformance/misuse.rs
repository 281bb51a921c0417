//! Scenarios of errors and misuse.

use std::ptr;
use std::sync::Barrier;
use std::time::Duration;

use libzero::{check, sys, Buffer, Config, Group, Key, Optimizer, ReduceOp, Result, Slot};

use crate::lines::{error, join, line, status};
use crate::ranks;
use crate::training::{config, Training};
use crate::values::array;

pub fn print() -> Result<()> {
    on_sealed("step-before-begin", |training| Ok(error(training.optimizer.step())))?;
    on_sealed("seal-twice", |training| Ok(error(training.optimizer.seal())))?;
    on_sealed("param-after-seal", |training| Ok(error(training.optimizer.add_param::<f32>("c", &[7], None))))?;
    on_built("param-dtype", |training| Ok(error(training.optimizer.add_param::<i32>("c", &[7], None))))?;
    on_built("param-shape", |training| Ok(error(training.optimizer.add_param::<f32>("c", &[-1], None))))?;
    on_built("param-name-twice", |training| Ok(error(training.optimizer.add_param::<f32>("w", &[7], None))))?;
    unknown_algorithm()?;
    on_begun("gradient-twice", |training| {
        training.optimizer.grad_ready(training.b, 0, &array(7, 0))?;
        Ok(error(training.optimizer.grad_ready(training.b, 0, &array(7, 0))))
    })?;
    on_begun("gradient-range", |training| Ok(error(training.optimizer.grad_ready(training.b, 0, &array(8, 0)))))?;
    on_begun("read-range", |training| Ok(error(training.optimizer.read(training.b.id(), Slot::Param, 0, &mut [0f32; 8]))))?;
    on_begun("rate-unknown", |training| Ok(error(training.optimizer.set_f64(0, Key::Stage, 1.0))))?;
    on_begun("trace-off", |training| Ok(error(training.optimizer.trace())))?;
    closed()?;
    failures()?;
    release_order()
}

/// What makes the optimizer of a scenario.
type Make = fn(&Group, Option<&Config>) -> Result<Training<f32>>;
/// What a scenario says.
type Act = fn(&mut Training<f32>) -> Result<String>;

fn on_built(name: &str, act: Act) -> Result<()> {
    on_one_rank(name, Training::built, act)
}

fn on_sealed(name: &str, act: Act) -> Result<()> {
    on_one_rank(name, Training::sealed, act)
}

fn on_begun(name: &str, act: Act) -> Result<()> {
    on_one_rank(name, Training::begun, act)
}

fn on_one_rank(name: &str, make: Make, act: Act) -> Result<()> {
    let said = ranks::run(1, |group, _| {
        let mut training = make(&group, Some(&config(|_| Ok(()))?))?;
        act(&mut training)
    })?;
    line(name, join(said));
    Ok(())
}

fn unknown_algorithm() -> Result<()> {
    let said = ranks::run(1, |group, _| {
        let mut config = Config::new()?;
        config.set(Key::Algorithm, "nothing")?;
        Ok(error(Optimizer::new(&group, Some(&config))))
    })?;
    line("unknown-algorithm", join(said));
    Ok(())
}

/// What is released cannot be asked in safe Rust, so this goes through the C API.
fn closed() -> Result<()> {
    let (mut group, mut optimizer) = (ptr::null_mut(), ptr::null_mut());
    let (mut id, mut size) = (0, 0);
    // SAFETY: names end with a NUL, shapes have as many extents as is said, outputs are locals, and a released handle is an error.
    let statuses = unsafe {
        check(sys::zero_group_create_local(ptr::null(), 0, 1, ptr::null(), &mut group))?;
        check(sys::zero_optimizer_create(group, ptr::null(), &mut optimizer))?;
        for (name, shape) in [(b"w\0", &[20, 30][..]), (b"b\0", &[7])] {
            let (name, dims) = (name.as_ptr().cast(), shape.len() as i64);
            check(sys::zero_optimizer_add_param(optimizer, ptr::null(), name, sys::ZERO_DTYPE_F32, shape.as_ptr(), dims, &mut id))?;
        }
        check(sys::zero_optimizer_seal(optimizer))?;
        check(sys::zero_optimizer_begin(optimizer, sys::ZERO_SOURCE_ROOT))?;
        sys::zero_group_release(group);
        let size = status(check(sys::zero_group_size(group, &mut size)));
        sys::zero_optimizer_release(optimizer);
        [size, status(check(sys::zero_optimizer_step(optimizer, ptr::null_mut(), ptr::null_mut())))]
    };
    line("closed", join(statuses));
    Ok(())
}

fn failures() -> Result<()> {
    let mismatch = ranks::run(3, |group, rank| {
        let mut data = array::<f32>(if rank == 0 { 10 } else { 11 }, rank);
        Ok(status(group.all_reduce_in_place(&mut data, ReduceOp::Sum)))
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
            return Ok("");
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
    let said = ranks::run(1, |group, _| {
        let buffer = Buffer::<f32>::new(&group, 1000, None)?;
        let mut training = Training::<f32>::begun(&group, Some(&config(|_| Ok(()))?))?;
        training.give_gradients(0)?;
        let outcome = training.optimizer.step();
        drop(group);
        drop(buffer);
        drop(training);
        Ok(status(outcome))
    })?;
    line("release-order", join(said));
    Ok(())
}
