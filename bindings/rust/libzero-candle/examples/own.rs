//! Trains the model with candle's own AdamW.

mod task;

use candle_core::Result;
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

fn main() -> Result<()> {
    let (varmap, model) = task::model()?;
    let params = ParamsAdamW { lr: 5e-3, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(varmap.all_vars(), params)?;
    for step in 0..task::STEPS {
        let batch = task::batch(step)?;
        let loss = model.loss(&batch)?;
        optimizer.backward_step(&loss)?;
        task::report(step, &loss)?;
    }
    Ok(())
}
