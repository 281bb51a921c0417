//! The caller's own memory for libzero's arenas, and the barrier that no panic of it passes.

use std::ffi::c_void;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};

/// Provides the private memory of objects made from a config ([`Config::allocator`](crate::Config::allocator)).
///
/// The methods run on the thread that makes a libzero call, of any object of the config, and must not call libzero. A panic in
/// [`allocate`](Allocator::allocate) makes that call fail for lack of memory; a panic in the others ends there.
///
/// # Safety
/// `allocate` returns memory for `nbytes` bytes, aligned to `alignment`, that nobody else uses until it is given to `free`; or `None`.
pub unsafe trait Allocator: Sync + 'static {
    /// Memory for `nbytes` bytes, aligned to `alignment`, a power of two; `None` when it is short.
    fn allocate(&self, nbytes: usize, alignment: usize) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `data` came from `allocate` with the same `nbytes`, and nobody uses it any more.
    unsafe fn free(&self, data: NonNull<u8>, nbytes: usize);

    /// Tells of arenas that other ranks read, threads or processes, and that libzero makes itself: their bytes when they are made, minus
    /// their bytes when they are gone.
    fn shared(&self, delta_nbytes: i64) {
        let _ = delta_nbytes;
    }
}

/// # Safety
/// `user` is the address of an `A` that lives for ever.
pub(crate) unsafe extern "C" fn allocate<A: Allocator>(nbytes: u64, alignment: u64, user: *mut c_void) -> *mut c_void {
    // SAFETY: as above.
    let allocator = unsafe { &*(user as *const A) };
    let memory = barrier(|| allocator.allocate(nbytes as usize, alignment as usize));
    memory.flatten().map_or(ptr::null_mut(), |data| data.as_ptr().cast())
}

/// # Safety
/// `user` is the address of an `A` that lives for ever, and `data` came from its `allocate` with the same `nbytes`.
pub(crate) unsafe extern "C" fn free<A: Allocator>(data: *mut c_void, nbytes: u64, user: *mut c_void) {
    // SAFETY: as above.
    let allocator = unsafe { &*(user as *const A) };
    if let Some(data) = NonNull::new(data.cast()) {
        // SAFETY: as above; libzero gives back what it has finished with.
        barrier(|| unsafe { allocator.free(data, nbytes as usize) });
    }
}

/// # Safety
/// `user` is the address of an `A` that lives for ever.
pub(crate) unsafe extern "C" fn shared<A: Allocator>(delta_nbytes: i64, user: *mut c_void) {
    // SAFETY: as above.
    let allocator = unsafe { &*(user as *const A) };
    barrier(|| allocator.shared(delta_nbytes));
}

/// Runs the caller's code; `None` after a panic, of which the panic hook has told. What it threw is dropped behind a barrier of its own;
/// what that throws is leaked.
fn barrier<R>(body: impl FnOnce() -> R) -> Option<R> {
    let discard = |thrown| mem::forget(catch_unwind(AssertUnwindSafe(|| drop(thrown))));
    catch_unwind(AssertUnwindSafe(body)).map_err(discard).ok()
}
