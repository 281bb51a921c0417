//! Bytes per rank of a training, with candle's own AdamW and in each stage, for two ranks and four.
//!
//! candle's bytes are those of Rust's allocator: vars, gradients, moments of its own optimizer. libzero's are those of its statistics. The
//! ranks are threads, among which both are divided.

mod counting;

use std::sync::atomic::Ordering;
use std::sync::Barrier;
use std::thread;

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::{AdamW, Linear, Optimizer, ParamsAdamW, VarBuilder, VarMap};
use libzero_candle::libzero::{Group, Key, Memory};
use libzero_candle::{Settings, ShardedOptimizer};

use counting::{NOW, PEAK};

const WIDTH: usize = 512;
const LAYERS: usize = 8;

struct Model(Vec<Linear>);

impl Model {
    fn new(varmap: &VarMap) -> Result<Self> {
        let vars = VarBuilder::from_varmap(varmap, DType::F32, &Device::Cpu);
        (0..LAYERS).map(|layer| candle_nn::linear(WIDTH, WIDTH, vars.pp(layer))).collect::<Result<_>>().map(Model)
    }

    fn loss(&self) -> Result<Tensor> {
        let x = Tensor::ones((2, WIDTH), DType::F32, &Device::Cpu)?;
        self.0.iter().try_fold(x, |x, layer| layer.forward(&x)?.tanh())?.sqr()?.mean_all()
    }
}

/// Bytes between steps and at the peak of steps, of this process: candle's, and libzero's.
#[derive(Clone, Copy, Default)]
struct Bytes {
    kept: i64,
    peak: i64,
    libzero: i64,
    libzero_peak: i64,
}

/// Trains two steps and counts in a third; `meet` keeps ranks together around the count.
fn train<O: Optimizer>(
    make: impl FnOnce(&VarMap) -> Result<O>,
    meet: impl Fn(),
    libzero: impl Fn(&O) -> Result<(i64, i64)>,
) -> Result<Bytes> {
    let varmap = VarMap::new();
    let model = Model::new(&varmap)?;
    let mut optimizer = make(&varmap)?;
    for _ in 0..2 {
        optimizer.backward_step(&model.loss()?)?;
    }
    meet();
    PEAK.store(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
    let kept = NOW.load(Ordering::Relaxed);
    meet();
    optimizer.backward_step(&model.loss()?)?;
    meet();
    let (libzero, libzero_peak) = libzero(&optimizer)?;
    Ok(Bytes { kept, peak: PEAK.load(Ordering::Relaxed), libzero, libzero_peak })
}

fn own() -> Result<Bytes> {
    train(|varmap| AdamW::new(varmap.all_vars(), ParamsAdamW::default()), || (), |_| Ok((0, 0)))
}

/// Of one rank, where all ranks count the same process.
fn sharded(rank: usize, size: usize, stage: i32, barrier: &Barrier) -> Result<Bytes> {
    let make = |varmap: &VarMap| {
        let name = format!("memory.{}.{size}.{stage}", std::process::id());
        let group = Group::local(&name, rank, size, None).map_err(candle_core::Error::wrap)?;
        let settings = Settings::adamw(ParamsAdamW::default())?.set(Key::Stage, stage)?.group(group);
        ShardedOptimizer::new(varmap.all_vars(), settings)
    };
    let libzero = |optimizer: &ShardedOptimizer| {
        let total = optimizer.libzero().memory(Memory::Total).map_err(candle_core::Error::wrap)?;
        Ok((total.now_nbytes, total.peak_nbytes))
    };
    let meet = || {
        barrier.wait();
    };
    let bytes = train(make, meet, libzero)?;
    Ok(Bytes { kept: bytes.kept / size as i64, peak: bytes.peak / size as i64, ..bytes })
}

fn ranks(size: usize, stage: i32) -> Result<Bytes> {
    let barrier = Barrier::new(size);
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| (rank, &barrier))
            .map(|(rank, barrier)| scope.spawn(move || sharded(rank, size, stage, barrier)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank ended")).next_back().expect("there is a rank")
    })
}

fn main() -> Result<()> {
    let parameters = (LAYERS * (WIDTH * WIDTH + WIDTH) * 4) as f64;
    let line = |what: String, bytes: Bytes| {
        let of = |nbytes: i64| nbytes as f64 / parameters;
        let (kept, peak) = (bytes.kept + bytes.libzero, bytes.peak + bytes.libzero_peak);
        println!("{what:18} {:6.2} {:8.2} {:8.2} {:8.2}", of(bytes.kept), of(bytes.libzero), of(kept), of(peak));
    };
    println!("bytes per rank, in multiples of P = {:.1} MB, the bytes of the parameters", parameters / 1e6);
    println!("{:18} {:>6} {:>8} {:>8} {:>8}", "", "candle", "libzero", "both", "peak");
    line("candle's AdamW".into(), own()?);
    for size in [2, 4] {
        for stage in 0..4 {
            line(format!("{size} ranks, stage {stage}"), ranks(size, stage)?);
        }
    }
    Ok(())
}
