//! Devices that the tests emulate, through the functions of tests/memory/caller_device.h: memory there, streams, copies.

use std::env;
use std::ffi::{c_void, CString};
use std::mem;
use std::os::raw::{c_char, c_int};

use libzero::{DeviceSlice, DeviceSliceMut};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// How late a stream's copies are.
const LATE_US: i64 = 300;

#[derive(Clone, Copy)]
pub struct Caller {
    alloc: unsafe extern "C" fn(i64, i64) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    stream_create: unsafe extern "C" fn(i64) -> *mut c_void,
    stream_destroy: unsafe extern "C" fn(*mut c_void),
    copy: unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_void, i64, i64),
    wait: unsafe extern "C" fn(*mut c_void),
}

/// `None`, with a word on it, where ZERO_TEST_CALLER_DEVICE names no library with devices: ctest sets it where they are built.
pub fn caller() -> Option<Caller> {
    let path = match env::var("ZERO_TEST_CALLER_DEVICE") {
        Ok(path) if !path.is_empty() => CString::new(path).unwrap(),
        _ => {
            eprintln!("left out: ZERO_TEST_CALLER_DEVICE names no library with devices");
            return None;
        }
    };
    // SAFETY: the functions have the types that caller_device.h gives them.
    unsafe {
        let library = dlopen(path.as_ptr(), 2);
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        let find = |name: &str| {
            let found = dlsym(library, CString::new(format!("caller_{name}")).unwrap().as_ptr());
            assert!(!found.is_null(), "{name}");
            found
        };
        Some(Caller {
            alloc: mem::transmute(find("alloc")),
            free: mem::transmute(find("free")),
            stream_create: mem::transmute(find("stream_create")),
            stream_destroy: mem::transmute(find("stream_destroy")),
            copy: mem::transmute(find("copy")),
            wait: mem::transmute(find("wait")),
        })
    }
}

/// A stream of a device.
pub struct Stream {
    caller: Caller,
    pub device: i64,
    pub raw: *mut c_void,
}

impl Stream {
    pub fn new(caller: Caller, device: i64) -> Self {
        // SAFETY: the device is one of those that are emulated.
        Stream { caller, device, raw: unsafe { (caller.stream_create)(device) } }
    }

    /// Gives the stream a late copy to the device. The values stay until it was waited for.
    pub fn put(&self, values: &[f32], mut to: DeviceSliceMut<'_, f32>) {
        assert_eq!(values.len(), to.len());
        // SAFETY: both have as many elements.
        unsafe { (self.caller.copy)(self.raw, to.as_mut_ptr().cast(), values.as_ptr().cast(), mem::size_of_val(values) as i64, LATE_US) }
    }

    /// The elements, after all that the stream was given.
    pub fn get(&self, from: DeviceSlice<'_, f32>) -> Vec<f32> {
        let mut values = vec![0.0; from.len()];
        // SAFETY: as above.
        unsafe {
            let nbytes = mem::size_of_val(&values[..]) as i64;
            (self.caller.copy)(self.raw, values.as_mut_ptr().cast(), from.as_ptr().cast(), nbytes, LATE_US);
        }
        self.wait();
        values
    }

    pub fn wait(&self) {
        // SAFETY: the stream lives.
        unsafe { (self.caller.wait)(self.raw) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: it has no work.
        unsafe { (self.caller.stream_destroy)(self.raw) }
    }
}

/// Memory of a device, which outlives the work of its stream.
pub struct Piece<'a> {
    stream: &'a Stream,
    first: *mut f32,
    len: usize,
}

impl<'a> Piece<'a> {
    pub fn new(stream: &'a Stream, len: usize) -> Self {
        // SAFETY: a piece has a byte at least.
        let first = unsafe { (stream.caller.alloc)(stream.device, (4 * len).max(1) as i64) };
        Piece { stream, first: first.cast(), len }
    }

    pub fn slice(&self) -> DeviceSlice<'_, f32> {
        // SAFETY: drop waits for the stream.
        unsafe { DeviceSlice::from_raw(self.stream.device, self.first, self.len) }
    }

    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_, f32> {
        // SAFETY: as above.
        unsafe { DeviceSliceMut::from_raw(self.stream.device, self.first, self.len) }
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        self.stream.wait();
        // SAFETY: nothing uses it any more.
        unsafe { (self.stream.caller.free)(self.first.cast()) }
    }
}
