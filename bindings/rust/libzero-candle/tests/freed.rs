//! When candle's gradients are freed, counted at Rust's allocator. A program of its own, because the count is of the process.

#[path = "../examples/counting/mod.rs"]
mod counting;
mod ranks;

use std::sync::atomic::Ordering;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use candle_nn::Optimizer;
use libzero_candle::ShardedOptimizer;

use counting::{NOW, PEAK};

const SIDE: usize = 256;
const NBYTES: i64 = (SIDE * SIDE * 4) as i64;
/// All else that is allocated meanwhile.
const SMALL: i64 = 65536;

/// One tensor of two units of memory, then four of one.
fn vars() -> Vec<Var> {
    (0..5).map(|index| Var::zeros((if index == 0 { 2 * SIDE } else { SIDE }, SIDE), DType::F32, &Device::Cpu).unwrap()).collect()
}

/// Gradients whose elements must be copied into order before they can be given, one at a time.
fn transposed(vars: &[Var]) -> GradStore {
    let mut grads = ranks::no_grads();
    for var in vars {
        let (rows, columns) = var.dims2().unwrap();
        grads.insert(var, Tensor::ones((columns, rows), DType::F32, &Device::Cpu).unwrap().t().unwrap());
    }
    grads
}

/// What a step has allocated at most beyond what was there before it, and what it leaves.
fn counted(step: impl FnOnce()) -> (i64, i64) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    step();
    (PEAK.load(Ordering::Relaxed) - before, NOW.load(Ordering::Relaxed) - before)
}

#[test]
fn a_step_that_owns_gradients_frees_each_before_it_takes_the_next() {
    let vars = vars();
    let mut optimizer = ShardedOptimizer::new(vars.clone(), ranks::descent(ranks::alone())).unwrap();
    optimizer.step_owned(transposed(&vars)).unwrap();
    let grads = transposed(&vars);
    let (peak, left) = counted(|| optimizer.step(&grads).unwrap());
    assert!((peak - 2 * NBYTES).abs() < SMALL && left.abs() < SMALL, "borrowed: {peak}, {left}");
    // The first var is given last: its copy of two units is made when four have been freed.
    let (peak, left) = counted(|| optimizer.step_owned(grads).unwrap());
    assert!((peak - NBYTES).abs() < SMALL && (left + 6 * NBYTES).abs() < SMALL, "owned: {peak}, {left}");
}
