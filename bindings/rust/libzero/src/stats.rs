//! Statistics: bytes by category, traffic by operation, time by phase, and texts that say what was chosen and why.

use std::mem;

use libzero_sys as sys;

use crate::buffer::Buffer;
use crate::element::Element;
use crate::enums::{Memory, Operation};
use crate::error::{check, Result};
use crate::group::Group;
use crate::optimizer::Optimizer;
use crate::text;

/// Bytes of one category on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// In use.
    pub now_nbytes: i64,
    /// Most in use so far.
    pub peak_nbytes: i64,
    /// After seal: what the stage keeps for ever, element by element and slot by slot.
    pub formula_nbytes: i64,
    /// After seal: what comes on top by buckets, padding and the largest tensor, at most.
    pub constant_nbytes: i64,
}

/// Traffic of one operation in one group, counted on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficStats {
    /// Calls.
    pub call_count: i64,
    /// Elements offered to other ranks, once per rank they go to.
    pub sent_elements: i64,
    /// Their bytes.
    pub sent_nbytes: i64,
}

/// Time and stalls of an optimizer since seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepStats {
    /// Steps, or reductions of steps that were taken in parts.
    pub step_count: i64,
    /// Nanoseconds of waiting for and making reductions inside steps.
    pub reduce_ns: i64,
    /// Nanoseconds of updates.
    pub apply_ns: i64,
    /// Nanoseconds of waiting for and making gathers inside steps.
    pub gather_ns: i64,
    /// Bytes of gradients that were ready but waited for an earlier bucket, summed over steps.
    pub stalled_nbytes: i64,
    /// Times that the pool of gradients grew beyond its first size.
    pub pool_grow_count: i64,
    /// A progress thread reduces while the caller works.
    pub overlap_active: bool,
}

impl Group {
    /// Traffic of the group's collectives.
    pub fn traffic(&self, operation: Operation) -> Result<TrafficStats> {
        let mut stats = init(sys::zero_traffic_stats_init)?;
        // SAFETY: the handle is the group's, and `stats` knows its own size.
        check(unsafe { sys::zero_stats_group_traffic(self.as_ptr(), operation.raw(), &mut stats) })?;
        Ok(TrafficStats::from(stats))
    }

    /// What was chosen and why: transport, host ranks, threads.
    pub fn describe(&self) -> Result<String> {
        // SAFETY: the handle is the group's; `text::read` gives memory of the length it says.
        text::read(|out, nbytes, needed| unsafe { sys::zero_describe_group(self.as_ptr(), out, nbytes, needed) })
    }
}

impl<T: Element> Buffer<T> {
    /// Memory of the buffer on this rank.
    pub fn memory(&self, category: Memory) -> Result<MemoryStats> {
        let mut stats = init(sys::zero_memory_stats_init)?;
        // SAFETY: the handle is the buffer's, and `stats` knows its own size.
        check(unsafe { sys::zero_stats_buffer_memory(self.as_ptr(), category.raw(), &mut stats) })?;
        Ok(MemoryStats::from(stats))
    }
}

impl Optimizer {
    /// Memory of the optimizer on this rank.
    pub fn memory(&self, category: Memory) -> Result<MemoryStats> {
        let mut stats = init(sys::zero_memory_stats_init)?;
        // SAFETY: the handle is the optimizer's, and `stats` knows its own size.
        check(unsafe { sys::zero_stats_optimizer_memory(self.as_ptr(), category.raw(), &mut stats) })?;
        Ok(MemoryStats::from(stats))
    }

    /// Traffic of the optimizer's own groups: `ReduceScatter` of gradients, `AllGather` of parameters (in stage 0 also of
    /// states, or of sums of gradients), `AllReduce` of votes.
    pub fn traffic(&self, operation: Operation) -> Result<TrafficStats> {
        let mut stats = init(sys::zero_traffic_stats_init)?;
        // SAFETY: the handle is the optimizer's, and `stats` knows its own size.
        check(unsafe { sys::zero_stats_optimizer_traffic(self.as_ptr(), operation.raw(), &mut stats) })?;
        Ok(TrafficStats::from(stats))
    }

    /// Time and stalls since seal.
    pub fn step_stats(&self) -> Result<StepStats> {
        let mut stats = init(sys::zero_step_stats_init)?;
        // SAFETY: the handle is the optimizer's, and `stats` knows its own size.
        check(unsafe { sys::zero_stats_optimizer_step(self.as_ptr(), &mut stats) })?;
        Ok(StepStats::from(stats))
    }

    /// What was chosen and why: kernels, overlap, buckets, the memory formula.
    pub fn describe(&self) -> Result<String> {
        // SAFETY: the handle is the optimizer's; `text::read` gives memory of the length it says.
        text::read(|out, nbytes, needed| unsafe { sys::zero_describe_optimizer(self.as_ptr(), out, nbytes, needed) })
    }

    /// What the optimizer did and when, as JSON in the Chrome trace format: the newest [`Key::TraceEvents`](crate::Key::TraceEvents)
    /// events since seal.
    pub fn trace(&self) -> Result<String> {
        // SAFETY: as in `describe`.
        text::read(|out, nbytes, needed| unsafe { sys::zero_stats_optimizer_trace(self.as_ptr(), out, nbytes, needed) })
    }
}

/// A struct that knows its own size and is zero otherwise, made by the function that the C API has for it.
pub(crate) fn init<S: Default>(init: unsafe extern "C" fn(*mut S, u64) -> i32) -> Result<S> {
    let mut out = S::default();
    // SAFETY: `out` is of the size that is given.
    check(unsafe { init(&mut out, mem::size_of::<S>() as u64) })?;
    Ok(out)
}

impl From<sys::zero_memory_stats> for MemoryStats {
    fn from(stats: sys::zero_memory_stats) -> Self {
        MemoryStats {
            now_nbytes: stats.now_nbytes,
            peak_nbytes: stats.peak_nbytes,
            formula_nbytes: stats.formula_nbytes,
            constant_nbytes: stats.constant_nbytes,
        }
    }
}

impl From<sys::zero_traffic_stats> for TrafficStats {
    fn from(stats: sys::zero_traffic_stats) -> Self {
        TrafficStats { call_count: stats.call_count, sent_elements: stats.sent_elements, sent_nbytes: stats.sent_nbytes }
    }
}

impl From<sys::zero_step_stats> for StepStats {
    fn from(stats: sys::zero_step_stats) -> Self {
        StepStats {
            step_count: stats.step_count,
            reduce_ns: stats.reduce_ns,
            apply_ns: stats.apply_ns,
            gather_ns: stats.gather_ns,
            stalled_nbytes: stats.stalled_nbytes,
            pool_grow_count: stats.pool_grow_count,
            overlap_active: stats.overlap_active != 0,
        }
    }
}
