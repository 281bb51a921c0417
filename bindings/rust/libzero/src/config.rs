//! Configs: what groups, buffers, optimizers and parameters are made from.

use std::ffi::CString;
use std::ptr::{self, NonNull};

use libzero_sys as sys;

use crate::abi;
use crate::allocator::{self, Allocator};
use crate::enums::{
    Code, DType, Divisor, LineCode, Master, Neighbours, Nonfinite, Residual, Rounding, ServerOrder, ServerRule, Snapshot, Tier, Unfilled,
};
use crate::error::{check, Error, Result};
use crate::key::Key;

/// A set of keys and values. An object copies what it needs, so the config may be changed or dropped afterwards.
///
/// ```
/// use libzero::{Config, Divisor, Key};
///
/// let mut config = Config::new()?;
/// config.set(Key::Stage, 2)?.set(Key::Algorithm, "sgd")?.set(Key::Lr, 0.1)?;
/// config.set(Key::Divisor, Divisor::Weights)?;
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// Only one thread may use a config at a time: it is [`Send`], but not [`Sync`].
#[derive(Debug)]
pub struct Config {
    handle: NonNull<sys::zero_config>,
    grad_dtype: Option<DType>,
    tied_to: Option<i64>,
    custom: bool,
    lazy: bool,
    device: i64,
    tier: i64,
}

// SAFETY: zero/config.h: "one thread per config at a time", and release on any thread.
unsafe impl Send for Config {}

impl Config {
    /// An empty config: every key has its default.
    pub fn new() -> Result<Self> {
        abi::check()?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` receives the config.
        check(unsafe { sys::zero_config_create(&mut handle) })?;
        let handle = NonNull::new(handle).expect("a new config has a handle");
        Ok(Config { handle, grad_dtype: None, tied_to: None, custom: false, lazy: false, device: -1, tier: i64::from(sys::ZERO_TIER_HOST) })
    }

    /// Sets a key. Integers, numbers, texts and this crate's enums are values; the key's type must be theirs. [`Key::OneCopy`] would make
    /// slices unsound, and is [`Code::Unsupported`].
    pub fn set<V: Value>(&mut self, key: Key, value: V) -> Result<&mut Self> {
        value.set(self, key)?;
        Ok(self)
    }

    /// Lets the ranks of one host keep one copy of the parameters in stages 1 and 2 (`ZERO_KEY_ONE_COPY`).
    ///
    /// # Safety
    /// Ranks then share memory that each of them sees as its own. From the moment a rank may change parameters, by a writable view, by
    /// [`Optimizer::init_param`](crate::Optimizer::init_param) or [`Optimizer::write`](crate::Optimizer::write), until the
    /// [`Optimizer::begin`](crate::Optimizer::begin) that follows, no other rank may hold or make a view of a parameter, and only one
    /// rank may hold a writable one.
    pub unsafe fn one_copy(&mut self, on: bool) -> Result<&mut Self> {
        self.set_number(sys::ZERO_KEY_ONE_COPY, i64::from(on))?;
        Ok(self)
    }

    /// Gives every object made from this config an allocator for its private memory.
    pub fn allocator<A: Allocator>(&mut self, allocator: &'static A) -> Result<&mut Self> {
        let user = allocator as *const A as *mut std::ffi::c_void;
        // SAFETY: the hooks take `user` for an `A`, which is Sync and lives for ever.
        check(unsafe {
            sys::zero_config_set_allocator(
                self.handle.as_ptr(),
                Some(allocator::allocate::<A>),
                Some(allocator::free::<A>),
                Some(allocator::shared::<A>),
                user,
            )
        })?;
        Ok(self)
    }

    pub(crate) fn as_ptr(&self) -> *const sys::zero_config {
        self.handle.as_ptr()
    }

    /// The dtype that [`Key::GradDtype`] was set to; the number 0 for "that of the parameter".
    pub(crate) fn grad_dtype(&self) -> Option<DType> {
        self.grad_dtype
    }

    pub(crate) fn tied_to(&self) -> Option<i64> {
        self.tied_to
    }

    /// [`Key::Algorithm`] is `custom`.
    pub(crate) fn is_custom(&self) -> bool {
        self.custom
    }

    /// [`Key::Device`]; -1 = none.
    pub(crate) fn device(&self) -> i64 {
        self.device
    }

    /// [`Key::Tier`] is [`Tier::Device`].
    pub(crate) fn is_on_device(&self) -> bool {
        self.tier == i64::from(sys::ZERO_TIER_DEVICE)
    }

    /// [`Key::CheckpointSnapshot`] is [`Snapshot::Lazy`].
    pub(crate) fn is_lazy(&self) -> bool {
        self.lazy
    }

    fn set_i64(&mut self, key: Key, value: i64) -> Result<()> {
        check_slices_stay_sound(key.raw())?;
        self.set_number(key.raw(), value)?;
        match key.raw() {
            sys::ZERO_KEY_GRAD_DTYPE => self.grad_dtype = Some(DType::from_raw(value as i32)),
            sys::ZERO_KEY_DEVICE => self.device = value,
            sys::ZERO_KEY_TIER => self.tier = value,
            sys::ZERO_KEY_TIED_TO => self.tied_to = Some(value),
            sys::ZERO_KEY_CHECKPOINT_SNAPSHOT => self.lazy = value == i64::from(sys::ZERO_SNAPSHOT_LAZY),
            _ => {}
        }
        Ok(())
    }

    fn set_number(&mut self, key: i32, value: i64) -> Result<()> {
        // SAFETY: the handle is this config's.
        check(unsafe { sys::zero_config_set_i64(self.handle.as_ptr(), key, value) })
    }

    fn set_f64(&mut self, key: Key, value: f64) -> Result<()> {
        // SAFETY: the handle is this config's.
        check(unsafe { sys::zero_config_set_f64(self.handle.as_ptr(), key.raw(), value) })
    }

    fn set_str(&mut self, key: Key, value: &str) -> Result<()> {
        let text = c_text("value", value)?;
        // SAFETY: the handle is this config's; the text is copied.
        check(unsafe { sys::zero_config_set_str(self.handle.as_ptr(), key.raw(), text.as_ptr()) })?;
        if key.raw() == sys::ZERO_KEY_ALGORITHM {
            self.custom = value == "custom";
        }
        Ok(())
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: the handle is this config's and is not used again.
        unsafe { sys::zero_config_release(self.handle.as_ptr()) }
    }
}

/// The C form of an optional config.
pub(crate) fn config_ptr(config: Option<&Config>) -> *const sys::zero_config {
    config.map_or(ptr::null(), Config::as_ptr)
}

/// Refuses what would make slices of memory that is shared. A value that never gets into a config cannot get into an optimizer either; the C
/// API would not tell what a config holds.
fn check_slices_stay_sound(key: i32) -> Result<()> {
    if key != sys::ZERO_KEY_ONE_COPY {
        return Ok(());
    }
    let text = "ZERO_KEY_ONE_COPY lets ranks share memory; Config::one_copy sets it and says what you then promise";
    Err(Error::new(Code::Unsupported, text))
}

/// A text for C.
pub(crate) fn c_text(argument: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|problem| {
        let text = format!("{argument} has a NUL at byte {}, but must have none", problem.nul_position());
        Error::new(Code::InvalidArgument, text)
    })
}

/// A number of elements, bytes or ranks for a key.
fn whole(value: usize) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::new(Code::InvalidArgument, format!("value is {value}, but must be below 2^63")))
}

/// What a key can be set to: integers, numbers, texts, and enums of this crate.
pub trait Value: sealed::Sealed {
    #[doc(hidden)]
    fn set(self, config: &mut Config, key: Key) -> Result<()>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! values {
    ($($type:ty, $value:ident => $set:ident $as:expr;)*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Value for $type {
                fn set(self, config: &mut Config, key: Key) -> Result<()> {
                    let $value = self;
                    config.$set(key, $as)
                }
            }
        )*
    };
}

values! {
    i32, value => set_i64 i64::from(value);
    i64, value => set_i64 value;
    u32, value => set_i64 i64::from(value);
    usize, value => set_i64 whole(value)?;
    bool, value => set_i64 i64::from(value);
    f32, value => set_f64 f64::from(value);
    f64, value => set_f64 value;
    &str, value => set_str value;
    String, value => set_str &value;
    DType, value => set_i64 i64::from(value.raw());
    Divisor, value => set_i64 i64::from(value.raw());
    LineCode, value => set_i64 i64::from(value.raw());
    Master, value => set_i64 i64::from(value.raw());
    Neighbours, value => set_i64 i64::from(value.raw());
    Nonfinite, value => set_i64 i64::from(value.raw());
    Residual, value => set_i64 i64::from(value.raw());
    Rounding, value => set_i64 i64::from(value.raw());
    ServerOrder, value => set_i64 i64::from(value.raw());
    ServerRule, value => set_i64 i64::from(value.raw());
    Snapshot, value => set_i64 i64::from(value.raw());
    Tier, value => set_i64 i64::from(value.raw());
    Unfilled, value => set_i64 i64::from(value.raw());
}
