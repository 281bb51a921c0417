//! Checkpoints: what a run needs to go on later, at any number of ranks and any stage.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libzero_sys as sys;

use crate::buffer::Buffer;
use crate::config::{c_text, config_ptr, Config};
use crate::element::Element;
use crate::enums::{DType, Part, TensorScope};
use crate::error::{check, Result};
use crate::group::{Group, NO_STREAM};
use crate::optimizer::Optimizer;
use crate::stats::init;
use crate::text;

/// The outcome of a save, a load or an export.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointResult {
    /// Steps applied, of the first optimizer.
    pub step: i64,
    /// Save, export: bytes of all files. Load: bytes that this rank read.
    pub nbytes: i64,
    /// Files without the manifest.
    pub file_count: i64,
    /// Files went past the page cache.
    pub direct: bool,
    /// Names that the save lacks, with [`Key::CheckpointMissing`](crate::Key::CheckpointMissing).
    pub missing: i64,
    /// Names that only the save has, with [`Key::CheckpointExtra`](crate::Key::CheckpointExtra).
    pub extra: i64,
    /// Tensors whose values were rounded into another type.
    pub converted: i64,
    /// Damaged saves that are newer than the one that was taken.
    pub fallback: i64,
    /// Bytes of the optimizers that an asynchronous save copied on this rank.
    pub snapshot_nbytes: i64,
    /// Nanoseconds in which a save kept this rank from using the optimizers.
    pub stall_ns: i64,
}

impl From<sys::zero_checkpoint_result> for CheckpointResult {
    fn from(result: sys::zero_checkpoint_result) -> Self {
        CheckpointResult {
            step: result.step,
            nbytes: result.nbytes,
            file_count: result.file_count,
            direct: result.direct != 0,
            missing: result.missing,
            extra: result.extra,
            converted: result.converted,
            fallback: result.fallback,
            snapshot_nbytes: result.snapshot_nbytes,
            stall_ns: result.stall_ns,
        }
    }
}

/// Things that are saved and loaded together, borrowed for as long as it lives: a checkpoint is made for a save or a load, and dropped.
/// All ranks add the same in the same order. The run goes on with its first optimizer from one checkpoint to the next.
///
/// ```
/// use libzero::{Checkpoint, Code, Group, Optimizer, Part, Source, TensorScope};
///
/// let folder = std::env::temp_dir().join(format!("libzero-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// let group = Group::alone(None)?;
/// let mut optimizer = Optimizer::new(&group, None)?;
/// optimizer.add_param::<f32>("w", &[4], None)?;
/// optimizer.seal()?;
/// optimizer.begin(Source::Local)?;
/// let mut seen = [17i64];
/// let mut checkpoint = Checkpoint::new(&group, None)?;
/// checkpoint.add_optimizer("", &mut optimizer)?.add_tensor("seen", &[1], &mut seen, TensorScope::One)?;
/// checkpoint.set_text("epoch", Some("3"))?;
/// checkpoint.save(folder.to_str().unwrap())?;
/// assert_eq!(checkpoint.load(folder.to_str().unwrap(), Part::All)?.fallback, 0);
/// assert_eq!(checkpoint.text("epoch")?, "3");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// It is neither [`Send`] nor [`Sync`]: it stays on the thread of the objects that it borrows.
#[derive(Debug)]
pub struct Checkpoint<'a> {
    handle: NonNull<sys::zero_checkpoint>,
    parts: PhantomData<&'a mut ()>,
    lazy: bool,
    /// Of the optimizers that a lazy save reads while they go on.
    pub(crate) read: Vec<Arc<()>>,
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint of nothing. `config` has the keys from [`Key::CheckpointStagingBytes`](crate::Key::CheckpointStagingBytes) on.
    pub fn new(group: &Group, config: Option<&Config>) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: group and config have their handles, and `handle` receives the checkpoint.
        check(unsafe { sys::zero_checkpoint_create(group.as_ptr(), config_ptr(config), &mut handle) })?;
        let handle = NonNull::new(handle).expect("a new checkpoint has a handle");
        Ok(Checkpoint { handle, parts: PhantomData, lazy: config.map_or(false, Config::is_lazy), read: Vec::new() })
    }

    /// Adds an optimizer with all that belongs to it. `prefix` stands before its names in files.
    pub fn add_optimizer(&mut self, prefix: &str, optimizer: &'a mut Optimizer) -> Result<&mut Self> {
        let prefix = c_text("prefix", prefix)?;
        // SAFETY: both have their handles, and the text ends with a NUL.
        check(unsafe { sys::zero_checkpoint_add_optimizer(self.handle.as_ptr(), prefix.as_ptr(), optimizer.as_ptr()) })?;
        if self.lazy {
            self.read.push(optimizer.readers());
        }
        Ok(self)
    }

    /// Adds a sharded buffer.
    pub fn add_buffer<T: Element>(&mut self, name: &str, buffer: &'a mut Buffer<T>) -> Result<&mut Self> {
        let name = c_text("name", name)?;
        // SAFETY: as above.
        check(unsafe { sys::zero_checkpoint_add_buffer(self.handle.as_ptr(), name.as_ptr(), buffer.as_ptr()) })?;
        Ok(self)
    }

    /// Adds a tensor of the program, of as many elements as `shape` says.
    pub fn add_tensor<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a mut [T], scope: TensorScope) -> Result<&mut Self> {
        let name = c_text("name", name)?;
        let wanted = shape.iter().try_fold(1i64, |product, &extent| product.checked_mul(extent));
        if wanted != Some(data.len() as i64) {
            return Err(crate::Error::new(
                crate::Code::InvalidArgument,
                format!("shape {shape:?} does not have the {} elements of data", data.len()),
            ));
        }
        // SAFETY: the text ends with a NUL, and `data` has the elements of the shape and is borrowed for as long as the checkpoint lives.
        check(unsafe {
            sys::zero_checkpoint_add_tensor(
                self.handle.as_ptr(),
                name.as_ptr(),
                T::DTYPE.raw(),
                shape.as_ptr(),
                shape.len() as i64,
                data.as_mut_ptr().cast(),
                scope.raw(),
            )
        })?;
        Ok(self)
    }

    /// Keeps a text of the program, such as its place in the data; those of rank 0 are saved. `None` removes it.
    pub fn set_text(&mut self, key: &str, text: Option<&str>) -> Result<()> {
        let key = c_text("key", key)?;
        let text = text.map(|text| c_text("text", text)).transpose()?;
        let text = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        // SAFETY: both texts end with a NUL, or the second is NULL.
        check(unsafe { sys::zero_checkpoint_set_text(self.handle.as_ptr(), key.as_ptr(), text) })
    }

    /// A text; [`Code::NotFound`](crate::Code::NotFound) for a key that has none.
    pub fn text(&self, key: &str) -> Result<String> {
        let key = c_text("key", key)?;
        text::read(|out, nbytes, needed| {
            // SAFETY: `out` has `nbytes` bytes.
            unsafe { sys::zero_checkpoint_get_text(self.handle.as_ptr(), key.as_ptr(), out, nbytes, needed) }
        })
    }

    /// Says that a tensor of a save, or all with `old.*`, has another name here.
    pub fn rename(&mut self, in_file: &str, here: &str) -> Result<()> {
        let (in_file, here) = (c_text("in_file", in_file)?, c_text("here", here)?);
        // SAFETY: both texts end with a NUL.
        check(unsafe { sys::zero_checkpoint_rename(self.handle.as_ptr(), in_file.as_ptr(), here.as_ptr()) })
    }

    /// Saves everything into a folder of its own inside `folder`, which must exist. A collective between steps.
    pub fn save(&mut self, folder: &str) -> Result<CheckpointResult> {
        let folder = c_text("folder", folder)?;
        let mut result = init(sys::zero_checkpoint_result_init)?;
        // SAFETY: what is saved is borrowed, and `result` knows its own size.
        check(unsafe { sys::zero_checkpoint_save(self.handle.as_ptr(), folder.as_ptr(), NO_STREAM, &mut result) })?;
        Ok(CheckpointResult::from(result))
    }

    /// Loads the newest valid save in `folder`, or the save that `folder` is. With [`Part::Params`], `folder` may also name plain safetensors
    /// of any tool: a file, or a folder of files. A collective between steps.
    pub fn load(&mut self, folder: &str, part: Part) -> Result<CheckpointResult> {
        let folder = c_text("folder", folder)?;
        let mut result = init(sys::zero_checkpoint_result_init)?;
        // SAFETY: what is loaded is borrowed by `&mut`, and `result` knows its own size.
        check(unsafe { sys::zero_checkpoint_load(self.handle.as_ptr(), folder.as_ptr(), part.raw(), NO_STREAM, &mut result) })?;
        Ok(CheckpointResult::from(result))
    }

    /// Writes the parameters as plain safetensors, which other tools read: one file if `path` ends with `.safetensors`, otherwise a folder.
    /// `None` writes each parameter as the optimizer keeps it. A collective between steps.
    pub fn export(&mut self, path: &str, dtype: Option<DType>) -> Result<CheckpointResult> {
        let path = c_text("path", path)?;
        let dtype = dtype.map_or(sys::ZERO_EXPORT_AS_KEPT, DType::raw);
        let mut result = init(sys::zero_checkpoint_result_init)?;
        // SAFETY: what is exported is borrowed, and `result` knows its own size.
        check(unsafe { sys::zero_checkpoint_export(self.handle.as_ptr(), path.as_ptr(), dtype, NO_STREAM, &mut result) })?;
        Ok(CheckpointResult::from(result))
    }

    /// What the last [`load`](Checkpoint::load) passed over or converted, a line each.
    pub fn skipped(&self) -> Result<String> {
        text::read(|out, nbytes, needed| {
            // SAFETY: `out` has `nbytes` bytes.
            unsafe { sys::zero_checkpoint_skipped(self.handle.as_ptr(), out, nbytes, needed) }
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::zero_checkpoint {
        self.handle.as_ptr()
    }
}

impl Drop for Checkpoint<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this checkpoint's and is not used again.
        unsafe { sys::zero_checkpoint_release(self.handle.as_ptr()) }
    }
}

/// The short form.
impl Optimizer {
    /// Saves the optimizer with all that belongs to it into a folder of its own inside `folder`, which must exist. A collective.
    pub fn save(&mut self, folder: &str) -> Result<()> {
        let folder = c_text("folder", folder)?;
        // SAFETY: the handle is the optimizer's, and the text ends with a NUL.
        check(unsafe { sys::zero_optimizer_save(self.as_ptr(), folder.as_ptr(), self.stream) })
    }

    /// Loads the newest valid save in `folder`, instead of [`begin`](Optimizer::begin); false where there is none. A collective.
    pub fn resume(&mut self, folder: &str) -> Result<bool> {
        let folder = c_text("folder", folder)?;
        let mut found = 0;
        // SAFETY: as above; `&mut` says that no view lives.
        check(unsafe { sys::zero_optimizer_resume(self.as_ptr(), folder.as_ptr(), self.stream, &mut found) })?;
        Ok(found != 0)
    }

    /// Asks all ranks to stop: the next step of all of them has the largest reason as
    /// [`stop_reason`](crate::StepResult::stop_reason).
    pub fn request_stop(&self, reason: i64) -> Result<()> {
        // SAFETY: the handle is the optimizer's.
        check(unsafe { sys::zero_optimizer_request_stop(self.as_ptr(), reason) })
    }
}
