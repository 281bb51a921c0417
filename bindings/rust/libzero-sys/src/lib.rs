//! libzero's C API as it is: functions, constants and structs, written from the headers by the generator of libzero's bindings.
//!
//! The headers `zero/*.h` that libzero installs are the manual. The crate `libzero` is the safe interface; this one is for what lies
//! beyond it. `build.rs` finds the library through pkg-config, or in the folder that the variable `LIBZERO_LIB_DIR` names; with the feature
//! `bundled` it builds the library from source.

#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod generated;

pub use generated::*;
