//! Allocators of the caller's own, also those that fail.

use std::alloc::{alloc, dealloc, Layout};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use libzero::{Allocator, Buffer, Code, Config, Group, Optimizer, Source};

const ALIGNMENT: usize = 64;

struct Counting {
    live: AtomicI64,
    calls: AtomicI64,
    panics: AtomicBool,
    short: AtomicBool,
}

impl Counting {
    const fn new() -> Self {
        Counting { live: AtomicI64::new(0), calls: AtomicI64::new(0), panics: AtomicBool::new(false), short: AtomicBool::new(false) }
    }

    fn layout(nbytes: usize) -> Layout {
        Layout::from_size_align(nbytes, ALIGNMENT).unwrap()
    }
}

// SAFETY: memory comes from the global allocator with the alignment that libzero asks for.
unsafe impl Allocator for Counting {
    fn allocate(&self, nbytes: usize, alignment: usize) -> Option<NonNull<u8>> {
        assert!(!self.panics.load(Ordering::Relaxed), "the allocator panics");
        assert_eq!(alignment, ALIGNMENT);
        if self.short.load(Ordering::Relaxed) {
            return None;
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(nbytes as i64, Ordering::Relaxed);
        // SAFETY: libzero asks for no empty memory.
        NonNull::new(unsafe { alloc(Self::layout(nbytes)) })
    }

    unsafe fn free(&self, data: NonNull<u8>, nbytes: usize) {
        self.live.fetch_sub(nbytes as i64, Ordering::Relaxed);
        // SAFETY: `data` came from `allocate`.
        unsafe { dealloc(data.as_ptr(), Self::layout(nbytes)) }
        assert!(!self.panics.load(Ordering::Relaxed), "the allocator panics");
    }
}

fn config(allocator: &'static Counting) -> Config {
    let mut config = Config::new().unwrap();
    config.allocator(allocator).unwrap();
    config
}

#[test]
fn memory_comes_from_the_allocator_and_goes_back() {
    static ALLOCATOR: Counting = Counting::new();
    let config = config(&ALLOCATOR);
    let group = Group::alone(Some(&config)).unwrap();
    let mut buffer = Buffer::<f32>::new(&group, 1000, Some(&config)).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&config)).unwrap();
    drop(config);
    let w = optimizer.add_param::<f32>("w", &[1000], None).unwrap();
    optimizer.seal().unwrap();
    optimizer.begin(Source::Local).unwrap();
    optimizer.grad_ready(w, 0, &[1.0; 1000]).unwrap();
    optimizer.step().unwrap();
    buffer.write(0, &[1.0; 1000]).unwrap();
    assert!(ALLOCATOR.live.load(Ordering::Relaxed) >= 4 * 1000 * (1 + 4));
    assert!(ALLOCATOR.calls.load(Ordering::Relaxed) >= 2);
    drop(group);
    drop(optimizer);
    std::thread::spawn(move || drop(buffer)).join().unwrap();
    assert_eq!(ALLOCATOR.live.load(Ordering::Relaxed), 0);
}

#[test]
fn no_memory_is_an_error() {
    static ALLOCATOR: Counting = Counting::new();
    ALLOCATOR.short.store(true, Ordering::Relaxed);
    let group = Group::alone(None).unwrap();
    let error = Buffer::<f32>::new(&group, 1000, Some(&config(&ALLOCATOR))).unwrap_err();
    assert_eq!(error.code(), Code::OutOfMemory);
    assert!(error.text().contains("the memory hook returned NULL"), "{error}");
    ALLOCATOR.short.store(false, Ordering::Relaxed);
    Buffer::<f32>::new(&group, 1000, Some(&config(&ALLOCATOR))).unwrap();
}

#[test]
fn a_panic_passes_no_c_code() {
    static ALLOCATOR: Counting = Counting::new();
    let group = Group::alone(None).unwrap();
    let buffer = Buffer::<f32>::new(&group, 1000, Some(&config(&ALLOCATOR))).unwrap();
    ALLOCATOR.panics.store(true, Ordering::Relaxed);
    let error = Buffer::<f32>::new(&group, 1000, Some(&config(&ALLOCATOR))).unwrap_err();
    assert_eq!(error.code(), Code::OutOfMemory);
    assert_eq!(buffer.whole().unwrap_err().code(), Code::OutOfMemory);
    drop(buffer);
    assert_eq!(ALLOCATOR.live.load(Ordering::Relaxed), 0);
}

#[test]
fn shared_memory_is_told_of() {
    static SHARED: AtomicI64 = AtomicI64::new(0);
    struct Told;
    // SAFETY: it has no memory to give.
    unsafe impl Allocator for Told {
        fn allocate(&self, _: usize, _: usize) -> Option<NonNull<u8>> {
            None
        }

        unsafe fn free(&self, _: NonNull<u8>, _: usize) {}

        fn shared(&self, delta_nbytes: i64) {
            SHARED.fetch_add(delta_nbytes, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let name = format!("rust-allocator.{}", std::process::id());
                let group = Group::local(&name, rank, 2, None).unwrap();
                let mut config = Config::new().unwrap();
                config.allocator(&Told).unwrap();
                let buffer = Buffer::<u8>::new(&group, 1 << 20, Some(&config)).unwrap();
                assert!(SHARED.load(Ordering::Relaxed) >= 1 << 19);
                group.barrier().unwrap();
                drop(buffer);
            });
        }
    });
    assert_eq!(SHARED.load(Ordering::Relaxed), 0);
}
