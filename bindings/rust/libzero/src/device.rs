//! Memory of a CUDA device: where it lies, and for how long. Nothing here reads it.

use std::marker::PhantomData;
use std::ops::Range;

use crate::element::SlotElement;

/// Elements in memory of a CUDA device that are only read: an address with its device and length, borrowed for `'a`.
///
/// The host cannot read them: [`as_ptr`](DeviceSlice::as_ptr) is for kernels and copies. It is neither [`Send`] nor [`Sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSlice<'a, T> {
    device: i64,
    first: *const T,
    len: usize,
    life: PhantomData<&'a [T]>,
}

impl<'a, T: SlotElement> DeviceSlice<'a, T> {
    /// `len` elements at `first` on CUDA device `device`.
    ///
    /// # Safety
    /// The elements lie there for `'a`, and after `'a` until the work has ended that the stream of an optimizer was given while it was called
    /// with them. Other work that writes to them is ordered before and after that stream's ([`Optimizer::set_stream`]).
    ///
    /// [`Optimizer::set_stream`]: crate::Optimizer::set_stream
    pub unsafe fn from_raw(device: i64, first: *const T, len: usize) -> Self {
        DeviceSlice { device, first, len, life: PhantomData }
    }

    /// The address on the device.
    pub fn as_ptr(&self) -> *const T {
        self.first
    }

    /// The number of the device.
    pub fn device(&self) -> i64 {
        self.device
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Some of the elements; `None` for a range that is not within them.
    pub fn get(&self, range: Range<usize>) -> Option<DeviceSlice<'a, T>> {
        let fits = range.start <= range.end && range.end <= self.len;
        fits.then(|| DeviceSlice { first: self.first.wrapping_add(range.start), len: range.len(), ..*self })
    }
}

/// As [`DeviceSlice`], of elements that are also written, and used through this alone. It is neither [`Send`] nor [`Sync`].
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceSliceMut<'a, T> {
    device: i64,
    first: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: SlotElement> DeviceSliceMut<'a, T> {
    /// `len` elements at `first` on CUDA device `device`.
    ///
    /// # Safety
    /// As [`DeviceSlice::from_raw`]; other work that reads them is ordered likewise.
    pub unsafe fn from_raw(device: i64, first: *mut T, len: usize) -> Self {
        DeviceSliceMut { device, first, len, life: PhantomData }
    }

    /// The address on the device.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.first
    }

    /// The same elements, to be read.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice { device: self.device, first: self.first, len: self.len, life: PhantomData }
    }

    /// The number of the device.
    pub fn device(&self) -> i64 {
        self.device
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
