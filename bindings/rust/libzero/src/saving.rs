//! Saves in the background: steps go on while files are written.

use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libzero_sys as sys;

use crate::checkpoint::{Checkpoint, CheckpointResult};
use crate::config::c_text;
use crate::error::{check, Result};
use crate::group::NO_STREAM;
use crate::optimizer::Optimizer;
use crate::stats::init;

/// A save in the background, with its outcome `R`. It holds the state at the time of the call that began it.
///
/// It borrows nothing: libzero has copied what is the program's, and keeps what is its own. Optimizers, buffers and the group may be used and
/// dropped meanwhile. Dropping a `Saving` waits for the save, at most for its deadline.
///
/// It is [`Send`], but not [`Sync`]: one thread at a time may wait for it.
pub struct Saving<R = CheckpointResult> {
    request: NonNull<sys::zero_request>,
    /// libzero writes here at the end of the save. A `Saving` that is forgotten leaks it.
    result: NonNull<sys::zero_checkpoint_result>,
    outcome: fn(sys::zero_checkpoint_result) -> R,
    /// Of optimizers whose memory the save reads while they go on.
    read: Vec<Arc<()>>,
}

// SAFETY: zero/request.h: "one thread per request at a time", and release on any thread.
unsafe impl<R> Send for Saving<R> {}

impl<R> Saving<R> {
    fn begin(
        outcome: fn(sys::zero_checkpoint_result) -> R,
        read: Vec<Arc<()>>,
        begin: impl FnOnce(*mut sys::zero_checkpoint_result, *mut *mut sys::zero_request) -> i32,
    ) -> Result<Self> {
        let mut request = ptr::null_mut();
        let result = NonNull::from(Box::leak(Box::new(init(sys::zero_checkpoint_result_init)?)));
        if let Err(error) = check(begin(result.as_ptr(), &mut request)) {
            // SAFETY: nothing has begun, so that the memory, which came from a Box, is this function's alone.
            unsafe { drop(Box::from_raw(result.as_ptr())) };
            return Err(error);
        }
        Ok(Saving { request: NonNull::new(request).expect("a new request has a handle"), result, outcome, read })
    }

    /// True once the save has ended. Never waits.
    pub fn done(&mut self) -> bool {
        let mut done = 0;
        // SAFETY: the handle is this save's, and the answer goes to a local. The status is the save's own, which `wait` returns.
        unsafe { sys::zero_request_test(self.request.as_ptr(), &mut done) };
        if done != 0 {
            self.read.clear();
        }
        done != 0
    }

    /// Waits until all ranks have committed the save.
    pub fn wait(self) -> Result<R> {
        // SAFETY: the handle is this save's.
        check(unsafe { sys::zero_request_wait(self.request.as_ptr()) })?;
        // SAFETY: the save has ended, so that libzero writes there no more; drop frees it.
        Ok((self.outcome)(unsafe { *self.result.as_ptr() }))
    }
}

impl<R> fmt::Debug for Saving<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saving").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<R> Drop for Saving<R> {
    fn drop(&mut self) {
        // SAFETY: the handle is this save's and is not used again. The release waits for the end of the save, so that the memory, which came
        // from a Box, is this save's alone.
        unsafe {
            sys::zero_request_release(self.request.as_ptr());
            drop(Box::from_raw(self.result.as_ptr()));
        }
    }
}

impl Checkpoint<'_> {
    /// Begins [`save`](Checkpoint::save) and returns once this rank has a snapshot of what it saves. The checkpoint ends, and with it what it
    /// borrows: steps may follow at once. Later saves and loads of the run wait until this one has ended.
    ///
    /// ```
    /// # use libzero::{Checkpoint, Group, Optimizer, Source};
    /// # let folder = std::env::temp_dir().join(format!("libzero-doc-saving-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let group = Group::alone(None)?;
    /// # let mut optimizer = Optimizer::new(&group, None)?;
    /// # optimizer.add_param::<f32>("w", &[4], None)?;
    /// # optimizer.seal()?;
    /// # optimizer.begin(Source::Local)?;
    /// let mut checkpoint = Checkpoint::new(&group, None)?;
    /// checkpoint.add_optimizer("", &mut optimizer)?;
    /// let saving = checkpoint.save_async(folder.to_str().unwrap())?;
    /// optimizer.step()?;
    /// assert_eq!(saving.wait()?.step, 0);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), libzero::Error>(())
    /// ```
    ///
    /// With [`Snapshot::Lazy`](crate::Snapshot::Lazy), [`View::slot`](crate::View::slot) hands out gradients only until the save has ended,
    /// except in a step of algorithm `custom`, whose `reduce` waits for the save.
    pub fn save_async(mut self, folder: &str) -> Result<Saving> {
        let folder = c_text("folder", folder)?;
        let read = mem::take(&mut self.read);
        Saving::begin(CheckpointResult::from, read, |result, request| {
            // SAFETY: what is saved is borrowed during the call, which copies tensors and buffers. The result stays where it is until the
            // request has ended.
            unsafe { sys::zero_checkpoint_save_async(self.as_ptr(), folder.as_ptr(), NO_STREAM, result, request) }
        })
    }
}

/// The short form.
impl Optimizer {
    /// Begins [`save`](Optimizer::save) and returns once this rank has a copy of what it saves: steps may follow at once. Later saves and
    /// loads of the run wait until this one has ended.
    pub fn save_async(&mut self, folder: &str) -> Result<Saving<()>> {
        let folder = c_text("folder", folder)?;
        Saving::begin(
            |_| (),
            Vec::new(),
            |_, request| {
                // SAFETY: the handle is the optimizer's, and the text ends with a NUL. `&mut` says that no view lives while libzero copies.
                unsafe { sys::zero_optimizer_save_async(self.as_ptr(), folder.as_ptr(), self.stream, request) }
            },
        )
    }
}
