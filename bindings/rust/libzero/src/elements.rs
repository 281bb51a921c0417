//! Elements in libzero's memory.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;

use crate::element::SlotElement;

/// The place of an array in libzero's memory. As in [`std::cell::Ref`] it is no reference, because a view gives its memory back before its
/// own life has ended.
pub(crate) struct Elements<T> {
    first: NonNull<T>,
    count: usize,
}

impl<T: SlotElement> Elements<T> {
    /// libzero aligns addresses to 64 bytes, and has none for no elements.
    pub(crate) fn new(data: *mut c_void, count: usize) -> Self {
        match NonNull::new(data.cast()) {
            Some(first) if count > 0 => Elements { first, count },
            _ => Self::none(),
        }
    }

    pub(crate) fn none() -> Self {
        Elements { first: NonNull::dangling(), count: 0 }
    }

    /// Where they lie, on the host or a device.
    pub(crate) fn place(&self) -> *mut T {
        self.first.as_ptr()
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// # Safety
    /// The elements are there, and nobody changes them, for as long as the slice is used.
    pub(crate) unsafe fn slice<'a>(&self) -> &'a [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }

    /// # Safety
    /// The elements are there, and nobody else reads or changes them, for as long as the slice is used.
    pub(crate) unsafe fn slice_mut<'a>(&self) -> &'a mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.count) }
    }
}

/// Views are shown as the slices that they are.
macro_rules! debug_as_slice {
    ($view:ident) => {
        impl<T: crate::element::Element> std::fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&**self, f)
            }
        }
    };
}
pub(crate) use debug_as_slice;
