//! Ranks as threads of the program.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libzero::{Group, Result};

/// What each of `size` ranks returns, in their order. They meet in a group that no other scenario has.
pub fn run<R: Send>(size: usize, body: impl Fn(Group, usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    static SCENARIOS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("conformance.{}.{}", process::id(), SCENARIOS.fetch_add(1, Ordering::Relaxed));
    let rank_main = |rank| body(Group::local(&name, rank, size, None)?, rank);
    thread::scope(|scope| {
        let rank_main = &rank_main;
        let ranks: Vec<_> = (0..size).map(|rank| scope.spawn(move || rank_main(rank))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank does not panic")).collect()
    })
}
