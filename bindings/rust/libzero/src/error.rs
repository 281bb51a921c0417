//! Errors: libzero's code and the text that goes with it.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_char;

use libzero_sys as sys;

use crate::enums::Code;

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed call: a code, and a text that says what was given and what was expected.
///
/// ```
/// use libzero::{Code, Config, Key};
///
/// let error = Config::new()?.set(Key::Stage, 4).unwrap_err();
/// assert_eq!(error.code(), Code::InvalidArgument);
/// assert_eq!(error.name(), "ZERO_E_INVALID_ARGUMENT");
/// assert!(error.text().contains("ZERO_KEY_STAGE"));
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// It is [`Send`] and [`Sync`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    text: String,
}

impl Error {
    /// An error that this crate itself decides.
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Error { code, text: text.into() }
    }

    /// The error of the call that failed last on this thread.
    fn last(status: i32) -> Self {
        const LONGEST: usize = 4096;
        let mut text = [0u8; LONGEST];
        // SAFETY: `text` has LONGEST bytes.
        let last = unsafe { sys::zero_last_error_copy(text.as_mut_ptr().cast(), LONGEST as i64) };
        if last != status {
            // Calls that a signal handler may make leave no text.
            let code = Code::from_raw(status);
            return Error::new(code, code.name());
        }
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
        Error::new(Code::from_raw(status), String::from_utf8_lossy(&text[..end]))
    }

    /// The code; its range says what was lost.
    pub fn code(&self) -> Code {
        self.code
    }

    /// libzero's text, without the code.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the code in the C API, for example `ZERO_E_TIMEOUT`.
    pub fn name(&self) -> &'static str {
        self.code.name()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text)
    }
}

impl std::error::Error for Error {}

/// What an error leaves unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The call only: nothing changed, the object is as it was before.
    Call,
    /// The object: drop it and make a new one.
    Handle,
    /// The group, on every rank: what waits for other ranks returns the error, the rest still works.
    Group,
    /// The process.
    Process,
}

impl Code {
    /// The name in the C API; `ZERO_E_UNKNOWN` for a number that the library that was loaded has no name for.
    pub fn name(self) -> &'static str {
        // SAFETY: the text is a constant that lives as long as the library, which is never unloaded.
        unsafe { static_text(sys::zero_status_name(self.raw())) }
    }

    /// What an error with this code leaves unusable.
    pub fn scope(self) -> Scope {
        match self.raw() {
            -299..=-200 => Scope::Handle,
            -399..=-300 => Scope::Group,
            i32::MIN..=-400 => Scope::Process,
            _ => Scope::Call,
        }
    }
}

/// The outcome of a call through [`libzero_sys`]: `status` is what the function returned, on this thread, just now.
///
/// ```
/// let (mut offset, mut count) = (0, 0);
/// let status = unsafe { libzero::sys::zero_group_share(std::ptr::null(), 10, 0, &mut offset, &mut count) };
/// assert_eq!(libzero::check(status).unwrap_err().name(), "ZERO_E_BAD_HANDLE");
/// ```
pub fn check(status: i32) -> Result<()> {
    if status == sys::ZERO_OK {
        Ok(())
    } else {
        Err(Error::last(status))
    }
}

/// A constant text of the library.
///
/// # Safety
/// `text` ends with a NUL and lives until the process ends.
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().unwrap_or("?")
}
