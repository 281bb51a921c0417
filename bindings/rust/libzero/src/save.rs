//! Saves as tools see them: one process lists, describes, verifies, compares, exports and removes them.

use std::ptr::{self, NonNull};

use libzero_sys as sys;

use crate::config::c_text;
use crate::enums::TextForm;
use crate::error::{check, Result};
use crate::text;

/// One save. No group is needed.
///
/// ```
/// use libzero::{Group, Optimizer, Save, Source, TextForm};
///
/// let folder = std::env::temp_dir().join(format!("libzero-save-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// let group = Group::alone(None)?;
/// let mut optimizer = Optimizer::new(&group, None)?;
/// optimizer.add_param::<f32>("w", &[4], None)?;
/// optimizer.seal()?;
/// optimizer.begin(Source::Local)?;
/// optimizer.save(folder.to_str().unwrap())?;
/// let save = Save::open(folder.to_str().unwrap())?;
/// save.verify()?;
/// assert!(save.describe(TextForm::Plain)?.contains("w [4]"));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// Only one thread may use a save at a time: it is [`Send`], but not [`Sync`].
#[derive(Debug)]
pub struct Save {
    handle: NonNull<sys::zero_save>,
}

// SAFETY: libzero lets any thread use a save, one at a time; it is not Sync.
unsafe impl Send for Save {}

impl Save {
    /// Opens the save at `path`, or the newest valid one if `path` is a folder of saves.
    pub fn open(path: &str) -> Result<Self> {
        let path = c_text("path", path)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the text ends with a NUL, and `handle` receives the save.
        check(unsafe { sys::zero_save_open(path.as_ptr(), &mut handle) })?;
        Ok(Save { handle: NonNull::new(handle).expect("a save that was opened has a handle") })
    }

    /// The step, the run, tensors with types, shapes and slots, settings, texts and files.
    pub fn describe(&self, form: TextForm) -> Result<String> {
        text::read(|out, nbytes, needed| {
            // SAFETY: `out` has `nbytes` bytes.
            unsafe { sys::zero_save_describe(self.handle.as_ptr(), form.raw(), out, nbytes, needed) }
        })
    }

    /// Reads all files and checks every block and every header. [`Code::Checkpoint`](crate::Code::Checkpoint) names the damaged file.
    pub fn verify(&self) -> Result<()> {
        // SAFETY: the handle is this save's.
        check(unsafe { sys::zero_save_verify(self.handle.as_ptr()) })
    }

    /// The number of differences to another save, which [`differences`](Save::differences) lists.
    pub fn compare(&self, other: &Save) -> Result<usize> {
        let mut count = 0;
        // SAFETY: both have their handles.
        check(unsafe { sys::zero_save_compare(self.handle.as_ptr(), other.handle.as_ptr(), &mut count) })?;
        Ok(count as usize)
    }

    /// The differences that the last [`compare`](Save::compare) found, a line or an object for each.
    pub fn differences(&self, form: TextForm) -> Result<String> {
        text::read(|out, nbytes, needed| {
            // SAFETY: `out` has `nbytes` bytes.
            unsafe { sys::zero_save_differences(self.handle.as_ptr(), form.raw(), out, nbytes, needed) }
        })
    }

    /// Writes the parameters as plain safetensors: a file that ends with `.safetensors`, or a new folder.
    pub fn export(&self, path: &str) -> Result<()> {
        let path = c_text("path", path)?;
        // SAFETY: the text ends with a NUL.
        check(unsafe { sys::zero_save_export(self.handle.as_ptr(), path.as_ptr()) })
    }

    /// Bytes that the last verify, compare or export has processed, and bytes in total.
    pub fn progress(&self) -> Result<(i64, i64)> {
        let (mut done, mut total) = (0, 0);
        // SAFETY: both numbers are locals.
        check(unsafe { sys::zero_save_progress(self.handle.as_ptr(), &mut done, &mut total) })?;
        Ok((done, total))
    }
}

impl Drop for Save {
    fn drop(&mut self) {
        // SAFETY: the handle is this save's and is not used again.
        unsafe { sys::zero_save_release(self.handle.as_ptr()) }
    }
}

/// All saves of a folder, newest first, a line or an object for each.
pub fn list_saves(folder: &str, form: TextForm) -> Result<String> {
    let folder = c_text("folder", folder)?;
    text::read(|out, nbytes, needed| {
        // SAFETY: the text ends with a NUL, and `out` has `nbytes` bytes.
        unsafe { sys::zero_save_list(folder.as_ptr(), form.raw(), out, nbytes, needed) }
    })
}

/// Names of the committed saves beyond the `keep` newest of each run, oldest first.
pub fn prunable_saves(folder: &str, keep: i64) -> Result<Vec<String>> {
    let folder = c_text("folder", folder)?;
    let names = text::read(|out, nbytes, needed| {
        // SAFETY: as above.
        unsafe { sys::zero_save_prunable(folder.as_ptr(), keep, out, nbytes, needed) }
    })?;
    Ok(names.lines().map(String::from).collect())
}

/// Removes a save: first its commit, then its files. The newest valid save of the folder is not removed.
pub fn remove_save(folder: &str, name: &str) -> Result<()> {
    let (folder, name) = (c_text("folder", folder)?, c_text("name", name)?);
    // SAFETY: both texts end with a NUL.
    check(unsafe { sys::zero_save_remove(folder.as_ptr(), name.as_ptr()) })
}
