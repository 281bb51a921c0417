//! Sharded buffers.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};

use libzero_sys as sys;

use crate::config::{config_ptr, Config};
use crate::element::Element;
use crate::elements::{debug_as_slice, Elements};
use crate::enums::ReduceOp;
use crate::error::{check, Result};
use crate::group::{Group, NO_STREAM};

/// A flat array of `T` whose shards lie with the ranks of a group.
///
/// All methods but [`len`](Buffer::len), [`is_empty`](Buffer::is_empty), [`memory`](Buffer::memory), those of the shard, and drop are
/// collectives: every rank calls them in the same order.
///
/// ```
/// use libzero::{Buffer, Group};
///
/// let group = Group::alone(None)?;
/// let mut buffer = Buffer::<f32>::new(&group, 1000, None)?;
/// buffer.write(10, &[1.0, 2.0])?;
/// let mut values = [0.0; 4];
/// buffer.read(9, &mut values)?;
/// assert_eq!(values, [0.0, 1.0, 2.0, 0.0]);
/// assert_eq!(buffer.whole()?[10..12], [1.0, 2.0]);
/// # Ok::<(), libzero::Error>(())
/// ```
///
/// Only one thread may use a buffer at a time: it is [`Send`], but not [`Sync`].
pub struct Buffer<T: Element> {
    handle: NonNull<sys::zero_buffer>,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: zero/buffer.h: "one thread per buffer at a time", and release on any thread.
unsafe impl<T: Element> Send for Buffer<T> {}

impl<T: Element> Buffer<T> {
    /// A buffer of `len` elements, all zero.
    pub fn new(group: &Group, len: usize, config: Option<&Config>) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: group and config have their handles, and `handle` receives the buffer.
        check(unsafe { sys::zero_buffer_create(group.as_ptr(), config_ptr(config), T::DTYPE.raw(), len as i64, &mut handle) })?;
        Ok(Buffer { handle: NonNull::new(handle).expect("a new buffer has a handle"), len, elements: PhantomData })
    }

    /// Elements of the whole.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when the whole has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which elements this rank's shard holds.
    pub fn shard_range(&self) -> Result<Range<usize>> {
        let (_, offset, count) = self.own()?;
        Ok(offset..offset + count)
    }

    /// This rank's shard.
    pub fn shard(&self) -> Result<&[T]> {
        let (data, _, count) = self.own()?;
        // SAFETY: the shard lives as long as the buffer, and what changes it takes the buffer by `&mut`.
        Ok(unsafe { Elements::new(data, count).slice() })
    }

    /// This rank's shard, to be changed in place.
    pub fn shard_mut(&mut self) -> Result<&mut [T]> {
        let (data, _, count) = self.own()?;
        // SAFETY: the shard lives as long as the buffer, which is borrowed by `&mut`; other ranks reach it only through collectives.
        Ok(unsafe { Elements::new(data, count).slice_mut() })
    }

    /// Gathers the whole into memory of its own, which the view holds; what is written there is not kept. One such view at a time.
    pub fn whole(&self) -> Result<Whole<'_, T>> {
        let mut data = ptr::null_mut();
        // SAFETY: the handle is the buffer's, and `data` receives the address.
        check(unsafe { sys::zero_buffer_whole_acquire(self.as_ptr(), NO_STREAM, &mut data) })?;
        Ok(Whole { buffer: self, elements: Elements::new(data, self.len) })
    }

    /// Shards = `op` over the ranks' contributions to the whole.
    pub fn reduce_scatter(&mut self, data: &[T], op: ReduceOp) -> Result<()> {
        // SAFETY: the handle is the buffer's, and `data` is a slice of its dtype.
        check(unsafe { sys::zero_buffer_reduce_scatter(self.as_ptr(), data.as_ptr().cast(), data.len() as i64, op.raw(), NO_STREAM) })
    }

    /// Fills `data` with elements of the whole from `offset` on, whoever owns them. Each rank gives its own range, which may be empty.
    pub fn read(&self, offset: usize, data: &mut [T]) -> Result<()> {
        // SAFETY: the handle is the buffer's, and `data` is a slice of its dtype.
        check(unsafe { sys::zero_buffer_read(self.as_ptr(), offset as i64, data.as_mut_ptr().cast(), data.len() as i64, NO_STREAM) })
    }

    /// Writes elements of the whole from `offset` on, whoever owns them. Where ranks' ranges overlap, the highest rank's values stay.
    pub fn write(&mut self, offset: usize, data: &[T]) -> Result<()> {
        // SAFETY: the handle is the buffer's, and `data` is a slice of its dtype.
        check(unsafe { sys::zero_buffer_write(self.as_ptr(), offset as i64, data.as_ptr().cast(), data.len() as i64, NO_STREAM) })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::zero_buffer {
        self.handle.as_ptr()
    }

    /// Address of the shard, its first element in the whole, its elements.
    fn own(&self) -> Result<(*mut c_void, usize, usize)> {
        let (mut data, mut offset, mut count) = (ptr::null_mut(), 0, 0);
        // SAFETY: the handle is the buffer's, and the results go to locals.
        check(unsafe { sys::zero_buffer_shard(self.as_ptr(), &mut data, &mut offset, &mut count) })?;
        Ok((data, offset as usize, count as usize))
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("dtype", &T::DTYPE).field("len", &self.len).finish()
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: the handle is this buffer's and is not used again.
        unsafe { sys::zero_buffer_release(self.handle.as_ptr()) }
    }
}

/// The whole of a [`Buffer`], gathered. It goes when it is dropped.
///
/// It is neither [`Send`] nor [`Sync`]; the slice in it may be lent to other threads.
pub struct Whole<'a, T: Element> {
    buffer: &'a Buffer<T>,
    elements: Elements<T>,
}

impl<T: Element> Deref for Whole<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is this view's until it gives it back: libzero gathers no other whole before.
        unsafe { self.elements.slice() }
    }
}

impl<T: Element> DerefMut for Whole<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { self.elements.slice_mut() }
    }
}

impl<T: Element> Drop for Whole<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the buffer lives; the memory is not used again. It is acquired, so this cannot fail.
        unsafe { sys::zero_buffer_whole_release(self.buffer.as_ptr()) };
    }
}

debug_as_slice!(Whole);
