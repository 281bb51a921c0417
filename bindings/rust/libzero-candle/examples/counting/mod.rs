//! Rust's allocator with a count of the bytes that it holds, for the programs that tell what candle takes. The count is of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counted;

/// Bytes held now.
pub static NOW: AtomicI64 = AtomicI64::new(0);
/// The most bytes held since this was set.
pub static PEAK: AtomicI64 = AtomicI64::new(0);

fn count(delta: i64) {
    let now = NOW.fetch_add(delta, Ordering::Relaxed) + delta;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller says.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;
