//! Runs one body per rank, each in its own thread.

use std::thread;

/// Runs body(0) .. body(count - 1) at the same time; the first error in the order of ranks.
pub fn run<E: Send>(count: usize, body: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
    let body = &body;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|rank| scope.spawn(move || body(rank))).collect();
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a rank does not panic")).collect();
        outcomes.into_iter().collect()
    })
}
