//! Trains the model with libzero's AdamW, sharded over the ranks of a launcher: `mpirun -n 2`, `torchrun`, or alone.

mod task;

use candle_core::Result;
use candle_nn::{Optimizer, ParamsAdamW};
use libzero_candle::{Settings, ShardedOptimizer};

fn main() -> Result<()> {
    let (varmap, model) = task::model()?;
    let params = ParamsAdamW { lr: 5e-3, ..ParamsAdamW::default() };
    let mut optimizer = ShardedOptimizer::new(varmap.all_vars(), Settings::adamw(params)?)?;
    for step in 0..task::STEPS {
        let batch = optimizer.share(&task::batch(step)?)?;
        let loss = model.loss(&batch)?;
        optimizer.backward_step(&loss)?;
        task::report(step, &loss)?;
    }
    Ok(())
}
