//! What both programs train: a small model that predicts the next of a sequence of tokens. All values are made from a counter, so every
//! process has the same.

use candle_core::{DType, Device, IndexOp, Module, Result, Tensor};
use candle_nn::{embedding, linear, loss::cross_entropy, Embedding, Linear, VarBuilder, VarMap};

pub const STEPS: u32 = 200;
const ROWS: u32 = 32;
const CONTEXT: usize = 4;
const TOKENS: u32 = 24;
const WIDTH: usize = 16;
const HIDDEN: usize = 64;

pub struct Model {
    table: Embedding,
    hidden: Linear,
    output: Linear,
}

impl Model {
    /// The mean loss of a batch, whose rows are a context and the token that follows it.
    pub fn loss(&self, batch: &Tensor) -> Result<Tensor> {
        let (rows, _) = batch.dims2()?;
        let context = batch.i((.., ..CONTEXT))?.contiguous()?;
        let x = self.table.forward(&context)?.reshape((rows, CONTEXT * WIDTH))?;
        let logits = self.output.forward(&self.hidden.forward(&x)?.tanh()?)?;
        cross_entropy(&logits, &batch.i((.., CONTEXT))?.contiguous()?)
    }
}

/// The model, and its vars with their first values.
pub fn model() -> Result<(VarMap, Model)> {
    let varmap = VarMap::new();
    let vars = VarBuilder::from_varmap(&varmap, DType::F32, &Device::Cpu);
    let model = Model {
        table: embedding(TOKENS as usize, WIDTH, vars.pp("table"))?,
        hidden: linear(CONTEXT * WIDTH, HIDDEN, vars.pp("hidden"))?,
        output: linear(HIDDEN, TOKENS as usize, vars.pp("output"))?,
    };
    for (name, var) in varmap.data().lock().unwrap().iter() {
        let seed = name.bytes().fold(0, |seed: u32, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let values: Vec<f32> = (0..var.elem_count() as u32).map(|i| random(seed.wrapping_add(i)) as f32 / 2e10).collect();
        var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu)?)?;
    }
    Ok((varmap, model))
}

/// The batch of a step: in each row a token is the sum of two before it, and two more.
pub fn batch(step: u32) -> Result<Tensor> {
    let mut tokens = Vec::new();
    for row in 0..ROWS {
        let seed = 2 * (step * ROWS + row);
        let (mut a, mut b) = (random(seed) % TOKENS, random(seed + 1) % TOKENS);
        for _ in 0..=CONTEXT {
            tokens.push(a);
            (a, b) = (b, (a + b + 2) % TOKENS);
        }
    }
    Tensor::from_vec(tokens, (ROWS as usize, CONTEXT + 1), &Device::Cpu)
}

pub fn report(step: u32, loss: &Tensor) -> Result<()> {
    println!("step {step:3}  loss {:.7}", loss.to_scalar::<f32>()?);
    Ok(())
}

/// The mixing function of murmur3.
fn random(counter: u32) -> u32 {
    let mut bits = counter.wrapping_add(0x9e37_79b9);
    for factor in [0x85eb_ca6b, 0xc2b2_ae35] {
        bits = (bits ^ (bits >> 15)).wrapping_mul(factor);
    }
    bits ^ (bits >> 16)
}
