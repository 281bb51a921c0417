//! Ranks as threads of a test.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use libzero::Group;

/// What each of `size` ranks returns, in their order. They meet in a group that no other test has. A rank that panics leaves the others
/// waiting no longer than the deadline.
pub fn run<R: Send>(size: usize, body: impl Fn(Group, usize) -> R + Sync) -> Vec<R> {
    const DEADLINE: Duration = Duration::from_secs(20);
    static WORLDS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("rust-test.{}.{}", process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
    let rank_main = |rank| {
        let group = Group::local(&name, rank, size, None).unwrap();
        group.set_deadline(DEADLINE).unwrap();
        body(group, rank)
    };
    thread::scope(|scope| {
        let rank_main = &rank_main;
        let ranks: Vec<_> = (0..size).map(|rank| scope.spawn(move || rank_main(rank))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}
