//! The library that was loaded.

use libzero_sys as sys;

use crate::abi;
use crate::enums::Feature;
use crate::error::{static_text, Result};
use crate::text;

/// The release of the library that was loaded, for example "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: the text lives as long as the library, which is never unloaded.
    unsafe { static_text(sys::zero_version()) }
}

/// The ABI of the library that was loaded: major * 65536 + minor. Constructors of this crate compare it with the one they need.
pub fn abi_version() -> i64 {
    abi::version()
}

/// True when the library that was loaded can do it on this machine.
pub fn has_feature(feature: Feature) -> bool {
    // SAFETY: takes a number, and any thread may call it.
    unsafe { sys::zero_has_feature(feature.raw()) == 1 }
}

/// Version, ABI, kernel targets and modules found.
pub fn describe() -> Result<String> {
    // SAFETY: `text::read` gives memory of the length it says.
    text::read(|out, nbytes, needed| unsafe { sys::zero_describe_library(out, nbytes, needed) })
}
