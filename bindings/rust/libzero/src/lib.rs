//! Process groups, sharded buffers and ZeRO optimizers for trainers: the safe interface to libzero.
//!
//! libzero shards optimizer states, gradients and parameters over the ranks of a group. It takes plain slices and knows nothing of models;
//! the headers `zero/*.h` that it installs are the manual, and each function here names in a sentence what stands there at length.
//!
//! ```
//! use libzero::{Config, Group, Key, Optimizer, Source};
//!
//! // Fits w in y = w x to y = 2 x. Alone this is a world of one; under mpirun or torchrun every rank brings a sample of its own.
//! let group = Group::env(None)?;
//! let mut config = Config::new()?;
//! config.set(Key::Stage, 3)?.set(Key::Algorithm, "sgd")?.set(Key::Lr, 0.1)?;
//! let mut optimizer = Optimizer::new(&group, Some(&config))?;
//! let w = optimizer.add_param::<f32>("w", &[], None)?;
//! optimizer.seal()?;
//! optimizer.begin(Source::Local)?; // w was not written: 0 on every rank
//! let x = 1.0 + 1.0 / (group.rank()? + 1) as f32;
//! for _ in 0..100 {
//!     let value = optimizer.param(w)?[0];
//!     let gradient = (value * x - 2.0 * x) * x;
//!     optimizer.grad_ready(w, 0, &[gradient])?; // averaged over the ranks
//!     optimizer.step()?;
//! }
//! assert!((optimizer.param(w)?[0] - 2.0).abs() < 1e-3);
//! # Ok::<(), libzero::Error>(())
//! ```
//!
//! # Ranks and threads
//!
//! A rank is a thread with a [`Group`] of its own, or a process of a launcher. A [`Group`] is [`Send`] and [`Sync`]. A [`Config`], [`Buffer`],
//! [`Optimizer`], [`Save`] and [`Saving`] is [`Send`]: one thread uses it at a time, and its views stay on that thread. Plain data that can be
//! copied is both. Each type states its rule.
//!
//! Collectives wait for the other ranks in the call; a rank that has something else to do meanwhile makes the call in a thread of
//! [`std::thread::scope`].
//!
//! # Ownership
//!
//! Objects hold what they were made from, so they may be dropped in any order. Views of parameters, gradients and shards are borrows: the
//! calls that would invalidate them, such as [`Optimizer::step`], do not compile while they live.
//!
//! # Errors
//!
//! Every failure is an [`Error`] with libzero's code and text. [`Code::scope`] tells what it leaves unusable.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod allocator;
#[cfg(doctest)]
mod borrows;
mod buffer;
mod checkpoint;
mod collectives;
mod config;
mod device;
mod dtype;
mod element;
mod elements;
mod enums;
mod error;
mod group;
mod half;
mod key;
mod library;
mod messages;
mod optimizer;
mod save;
mod saving;
mod server;
mod stats;
mod text;

pub use libzero_sys as sys;

pub use allocator::Allocator;
pub use buffer::{Buffer, Whole};
pub use checkpoint::{Checkpoint, CheckpointResult};
pub use config::{Config, Value};
pub use device::{DeviceSlice, DeviceSliceMut};
pub use element::{Element, F8Ue5M3, SlotElement, F8E4M3};
pub use enums::{
    Code, DType, Divisor, Feature, Finding, LineCode, Master, Memory, MicroStep, Neighbours, Nonfinite, Operation, Part, ReduceOp, Residual,
    Rounding, ServerOrder, ServerRule, Slot, Snapshot, Source, SyncRule, TensorScope, TextForm, Tier, Unfilled,
};
pub use error::{check, Error, Result, Scope};
pub use group::{Group, MPI_WORLD};
pub use half::{Bf16, F16};
pub use key::{Bounds, Key};
pub use library::{abi_version, describe, has_feature, version};
pub use optimizer::{
    DeviceGradView, DeviceParamView, DeviceParamViewMut, GradView, Initialiser, ModuleBuffer, ModuleBufferView, Optimizer, Param,
    ParamView, ParamViewMut, Reduction, SlotInfo, StepResult, VerifyResult, View,
};
pub use save::{list_saves, prunable_saves, remove_save, Save};
pub use saving::Saving;
pub use server::{Server, ServerResult};
pub use stats::{MemoryStats, StepStats, TrafficStats};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
