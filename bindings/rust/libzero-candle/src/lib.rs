//! A ZeRO optimizer for [candle](https://docs.rs/candle-core): [`ShardedOptimizer`] implements [`candle_nn::Optimizer`], and shards the
//! work and the memory of optimizer steps over the ranks of a [`libzero::Group`].
//!
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use candle_nn::{Module, Optimizer, ParamsAdamW, VarBuilder, VarMap};
//! use libzero_candle::{Settings, ShardedOptimizer}; // in place of candle_nn::AdamW
//!
//! let varmap = VarMap::new();
//! let model = candle_nn::linear(4, 1, VarBuilder::from_varmap(&varmap, DType::F32, &Device::Cpu))?;
//! let params = ParamsAdamW { lr: 0.1, ..ParamsAdamW::default() };
//! // was: let mut optimizer = AdamW::new(varmap.all_vars(), params)?;
//! let mut optimizer = ShardedOptimizer::new(varmap.all_vars(), Settings::adamw(params)?)?;
//! for _ in 0..100 {
//!     let x = Tensor::randn(0f32, 1.0, (8, 4), &Device::Cpu)?; // each rank draws samples of its own
//!     let loss = candle_nn::loss::mse(&model.forward(&x)?, &x.sum_keepdim(1)?)?;
//!     optimizer.backward_step(&loss)?;
//! }
//! # Ok::<(), candle_core::Error>(())
//! ```
//!
//! Alone this is a world of one; under `mpirun` or `torchrun` every process is a rank.
//!
//! # What a step does
//!
//! Gradients are averaged over the ranks, each rank updates the part of the parameters that it owns, and the new values are copied into
//! the vars of all ranks. Whatever the stage, the results have the same bits.
//!
//! # Memory
//!
//! A candle [`Var`](candle_core::Var) is always whole, and its memory is candle's. libzero therefore works on a copy. With P bytes of f32
//! parameters, N ranks and AdamW, a rank keeps between steps:
//!
//! | | vars | copy | gradients | states | all | N = 2 | N = 8 |
//! |---|---|---|---|---|---|---|---|
//! | [`candle_nn::AdamW`] | P | | | 2P | 3P | 3P | 3P |
//! | stage 0 | P | P | P | 2P | 5P | 5P | 5P |
//! | stage 1 | P | P | P | 2P/N | 3P + 2P/N | 4P | 3.25P |
//! | stage 2 | P | P | P/N | 2P/N | 2P + 3P/N | 3.5P | 2.38P |
//! | stage 3 | P | P/N | P/N | 2P/N | P + 4P/N | 3P | 1.5P |
//!
//! Backward takes another P for candle's gradients, in all rows. [`backward_step`](candle_nn::Optimizer::backward_step) and
//! [`step_owned`](ShardedOptimizer::step_owned) free each of them once libzero has it; [`step`](candle_nn::Optimizer::step) only borrows
//! them, so that they stay until the caller drops them.
//!
//! - Stage 3, the default, saves the most: it shards the copy. It does not shard the vars, so a model must fit each rank whole.
//! - Stage 2 shards libzero's gradients. candle hands over gradients only after the whole backward, so their peak stays P.
//! - Stages 0 and 1 take more than candle's own optimizer. They are here for comparisons.
//!
//! # Ranks
//!
//! All ranks make the same model, in the same order, and call [`step`](candle_nn::Optimizer::step) equally often. First values are those of
//! rank 0: candle seeds no random numbers on the CPU. An error of one rank is an error of all, at the latest after the group's deadline.
//!
//! # Errors
//!
//! Those of libzero arrive as [`candle_core::Error::Wrapped`] with libzero's text.

#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod entries;
mod error;
mod optimizer;
mod settings;
mod values;

pub use libzero;

pub use optimizer::ShardedOptimizer;
pub use settings::Settings;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
