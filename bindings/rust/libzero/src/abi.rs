//! The ABI of the library that was loaded against the one that this crate was written for.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Once;

use libzero_sys as sys;

use crate::enums::Code;
use crate::error::{Error, Result};

static FOUND: AtomicI64 = AtomicI64::new(0);
static LOOKED: Once = Once::new();

/// An error unless the library has the same major number and at least the same minor one. Every object begins with this.
pub(crate) fn check() -> Result<()> {
    LOOKED.call_once(|| FOUND.store(version(), Ordering::Relaxed));
    compare(FOUND.load(Ordering::Relaxed))
}

/// `major * 65536 + minor` of the library that was loaded.
pub(crate) fn version() -> i64 {
    // SAFETY: takes nothing, and any thread may call it.
    unsafe { sys::zero_abi_version() }
}

fn compare(found: i64) -> Result<()> {
    let (major, minor) = (found >> 16, found & 0xffff);
    if major == sys::ZERO_ABI_MAJOR && minor >= sys::ZERO_ABI_MINOR {
        return Ok(());
    }
    Err(Error::new(
        Code::Unsupported,
        format!(
            "the libzero that was loaded has ABI {major}.{minor}, but this crate needs {}.{} or a later minor of the same major",
            sys::ZERO_ABI_MAJOR,
            sys::ZERO_ABI_MINOR
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn same_major_and_later_minor_are_taken() {
        assert!(compare(1).is_ok());
        assert!(compare(7).is_ok());
    }

    #[test]
    fn another_major_or_an_older_minor_is_an_error() {
        for (found, text) in [(0, "0.0"), (1 << 16, "1.0"), ((1 << 16) + 1, "1.1")] {
            let error = compare(found).unwrap_err();
            assert_eq!(error.name(), "ZERO_E_UNSUPPORTED");
            assert!(error.text().contains(&format!("has ABI {text},")), "{error}");
        }
    }
}
