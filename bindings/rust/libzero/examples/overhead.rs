//! Nanoseconds of a call from Rust, beside those that conformance/c/overhead.c prints for C.

use std::time::Instant;

use libzero::{abi_version, Config, Group, Key, Optimizer, Result, Source};

const ROUNDS: usize = 5;
const PARAMS: usize = 1000;
const ELEMENTS: usize = 16;

fn main() -> Result<()> {
    let group = Group::alone(None)?;
    let mut config = Config::new()?;
    config.set(Key::Overlap, 0)?;
    let mut optimizer = Optimizer::new(&group, Some(&config))?;
    let params: Result<Vec<_>> = (0..PARAMS).map(|i| optimizer.add_param(&format!("p{i}"), &[ELEMENTS as i64], None)).collect();
    let params = params?;
    optimizer.seal()?;
    optimizer.begin(Source::Local)?;

    measure("empty-call", 1_000_000, || {
        abi_version();
        Ok(())
    })?;
    measure("group-size", 100_000, || group.size().map(drop))?;
    measure("step-1000", 100, || {
        for &param in &params {
            optimizer.grad_ready(param, 0, &[0f32; ELEMENTS])?;
        }
        optimizer.step().map(drop)
    })?;
    measure("step-1000-bulk", 100, || {
        let gradient = [0f32; ELEMENTS];
        let grads: Vec<_> = params.iter().map(|&param| (param, &gradient[..])).collect();
        optimizer.grads_ready(&grads)?;
        optimizer.step().map(drop)
    })
}

/// The least of the rounds' means: what else the machine does only adds to one.
fn measure(name: &str, calls: u32, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    println!("{name}: {least:.1}");
    Ok(())
}
