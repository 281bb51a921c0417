//! Ranks as threads of a test, and vars with values for it.

#![allow(dead_code)] // no test uses all of it

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Shape, Tensor, Var};
use libzero_candle::libzero::{Group, Key};
use libzero_candle::Settings;

/// What each of `size` ranks returns, in their order. They meet in a group that no other test has.
pub fn run<R: Send>(size: usize, body: impl Fn(Group, usize) -> R + Sync) -> Vec<R> {
    const DEADLINE: Duration = Duration::from_secs(20);
    static WORLDS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("candle-test.{}.{}", process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
    let rank_main = |rank| {
        let group = Group::local(&name, rank, size, None).unwrap();
        group.set_deadline(DEADLINE).unwrap();
        body(group, rank)
    };
    thread::scope(|scope| {
        let rank_main = &rank_main;
        let ranks: Vec<_> = (0..size).map(|rank| scope.spawn(move || rank_main(rank))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// A world of one.
pub fn alone() -> Group {
    Group::alone(None).unwrap()
}

/// Plain descent at rate 1: a step subtracts the gradient.
pub fn descent(group: Group) -> Settings {
    Settings::new("sgd", 1.0).unwrap().group(group)
}

pub fn staged(settings: Settings, stage: i32) -> Settings {
    settings.set(Key::Stage, stage).unwrap()
}

/// Numbers from -1 to 1, others for each seed.
pub fn numbers(seed: u64, shape: impl Into<Shape>) -> Tensor {
    let shape = shape.into();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.elem_count()).map(|_| next()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

pub fn var(seed: u64, shape: impl Into<Shape>, dtype: DType) -> Var {
    Var::from_tensor(&numbers(seed, shape).to_dtype(dtype).unwrap()).unwrap()
}

/// A scalar, an empty tensor, and others, of sizes around those at which libzero cuts.
pub fn vars() -> Vec<Var> {
    let shapes: [&[usize]; 6] = [&[], &[3], &[5, 7], &[0, 4], &[300], &[2, 3, 129]];
    shapes.iter().enumerate().map(|(seed, &shape)| var(seed as u64, shape, DType::F32)).collect()
}

/// Those that candle's own optimizers can update: they fail at a var without elements.
pub fn not_empty(vars: &[Var]) -> Vec<Var> {
    vars.iter().filter(|var| var.elem_count() > 0).cloned().collect()
}

/// A store without gradients of vars.
pub fn no_grads() -> GradStore {
    Tensor::zeros((), DType::F32, &Device::Cpu).unwrap().backward().unwrap()
}

/// A gradient for each var.
pub fn grads(seed: u64, vars: &[Var]) -> GradStore {
    let mut grads = no_grads();
    for (index, var) in vars.iter().enumerate() {
        grads.insert(var, numbers(1000 * seed + index as u64 + 7, var.shape()).to_dtype(var.dtype()).unwrap());
    }
    grads
}

/// The elements of a tensor, in order.
pub fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

pub fn all_values(vars: &[Var]) -> Vec<f64> {
    vars.iter().flat_map(|var| values(var)).collect()
}

/// The largest difference between two lists.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}
