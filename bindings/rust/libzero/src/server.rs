//! Parameter servers.

use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};

use libzero_sys as sys;

use crate::config::{config_ptr, Config};
use crate::elements::Elements;
use crate::error::{check, Result};
use crate::group::Group;
use crate::stats::init;

/// One rank's part in parameter servers: the first [`Key::ServerRanks`](crate::Key::ServerRanks) ranks of a group hold and update
/// parameters, the others push and pull them. `zero/server.h` tells the rules.
///
/// Only one thread may use it at a time: it is [`Send`], but not [`Sync`].
pub struct Server {
    handle: NonNull<sys::zero_server>,
    len: usize,
}

// SAFETY: zero/server.h: "one thread per server object at a time", and release on any thread.
unsafe impl Send for Server {}

/// What a server did in [`Server::run`]. The age of a push is the number of pushes that were applied since its worker last pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerResult {
    /// Pushes, skipped ones included.
    pub push_count: i64,
    /// Pulls.
    pub pull_count: i64,
    /// Pushes that were not finite, and not applied.
    pub skipped_count: i64,
    /// Pushes and pulls that could not be served when they arrived.
    pub waited_count: i64,
    /// Workers that left.
    pub left_count: i64,
    /// Workers that were lost.
    pub lost_count: i64,
    /// Bytes of pushes.
    pub received_nbytes: i64,
    /// Bytes of pulls.
    pub sent_nbytes: i64,
    /// The greatest age of a push.
    pub greatest_age: i64,
    /// Pushes of age 0, 1, 2 to 3, 4 to 7, 8 to 15, 16 and more.
    pub age_counts: [i64; 6],
}

impl From<sys::zero_server_result> for ServerResult {
    fn from(raw: sys::zero_server_result) -> Self {
        ServerResult {
            push_count: raw.push_count,
            pull_count: raw.pull_count,
            skipped_count: raw.skipped_count,
            waited_count: raw.waited_count,
            left_count: raw.left_count,
            lost_count: raw.lost_count,
            received_nbytes: raw.received_nbytes,
            sent_nbytes: raw.sent_nbytes,
            greatest_age: raw.greatest_age,
            age_counts: [raw.age_0_count, raw.age_1_count, raw.age_2_count, raw.age_4_count, raw.age_8_count, raw.age_16_count],
        }
    }
}

impl Server {
    /// One rank's part in servers of `len` parameters. Not a collective.
    pub fn new(group: &Group, len: usize, config: Option<&Config>) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: group and config have their handles, and `handle` receives the object.
        check(unsafe { sys::zero_server_create(group.as_ptr(), config_ptr(config), len as i64, &mut handle) })?;
        Ok(Server { handle: NonNull::new(handle).expect("a new server has a handle"), len })
    }

    /// Parameters of all servers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Compares what all ranks made, and connects servers and workers. A collective.
    pub fn seal(&mut self) -> Result<()> {
        // SAFETY: the handle is the object's.
        check(unsafe { sys::zero_server_seal(self.as_ptr()) })
    }

    /// Which parameters this server holds.
    pub fn shard_range(&self) -> Result<Range<usize>> {
        let (_, offset, count) = self.own()?;
        Ok(offset..offset + count)
    }

    /// The parameters that this server holds.
    pub fn shard(&self) -> Result<&[f32]> {
        let (elements, _, _) = self.own()?;
        // SAFETY: the shard lives as long as the object, and what changes it takes the object by `&mut`.
        Ok(unsafe { elements.slice() })
    }

    /// The parameters that this server holds, to be changed in place.
    pub fn shard_mut(&mut self) -> Result<&mut [f32]> {
        let (elements, _, _) = self.own()?;
        // SAFETY: the shard lives as long as the object, which is borrowed by `&mut`.
        Ok(unsafe { elements.slice_mut() })
    }

    /// Gives a server the order that it keeps to in [`run`](Server::run): what [`record`](Server::record) returned on it.
    pub fn replay(&mut self, record: &[u16]) -> Result<()> {
        // SAFETY: the handle is the object's, and `record` is copied.
        check(unsafe { sys::zero_server_replay(self.as_ptr(), record.as_ptr().cast(), record.len() as i64) })
    }

    /// The order that a server recorded in [`run`](Server::run): for each push the worker's number, for each pull 32768 more.
    pub fn record(&self) -> Result<Vec<u16>> {
        let mut count = 0;
        // SAFETY: the handle is the object's; no elements are written.
        check(unsafe { sys::zero_server_record(self.as_ptr(), ptr::null_mut(), 0, &mut count) })?;
        let mut record = vec![0u16; count as usize];
        // SAFETY: the handle is the object's, and `record` has room for the elements.
        check(unsafe { sys::zero_server_record(self.as_ptr(), record.as_mut_ptr().cast(), count, &mut count) })?;
        Ok(record)
    }

    /// Serves the workers until all have left or were lost.
    pub fn run(&mut self) -> Result<ServerResult> {
        let mut result = init(sys::zero_server_result_init)?;
        // SAFETY: the handle is the object's, and `result` knows its own size.
        check(unsafe { sys::zero_server_run(self.as_ptr(), &mut result) })?;
        Ok(ServerResult::from(result))
    }

    /// Sends a gradient, or parameters, to the servers. Waits within the bound of staleness.
    pub fn push(&mut self, data: &[f32]) -> Result<()> {
        // SAFETY: the handle is the object's, and `data` is a slice of f32.
        check(unsafe { sys::zero_server_push(self.as_ptr(), data.as_ptr().cast(), data.len() as i64) })
    }

    /// Fills `data` with the parameters. Waits as [`push`](Server::push).
    pub fn pull(&mut self, data: &mut [f32]) -> Result<()> {
        // SAFETY: the handle is the object's, and `data` is a slice of f32.
        check(unsafe { sys::zero_server_pull(self.as_ptr(), data.as_mut_ptr().cast(), data.len() as i64) })
    }

    /// Tells the servers that this worker makes no more calls.
    pub fn leave(&mut self) -> Result<()> {
        // SAFETY: the handle is the object's.
        check(unsafe { sys::zero_server_leave(self.as_ptr()) })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::zero_server {
        self.handle.as_ptr()
    }

    /// The shard, its first element among the parameters, its elements.
    fn own(&self) -> Result<(Elements<f32>, usize, usize)> {
        let (mut data, mut offset, mut count) = (ptr::null_mut(), 0, 0);
        // SAFETY: the handle is the object's, and the results go to locals.
        check(unsafe { sys::zero_server_shard(self.as_ptr(), &mut data, &mut offset, &mut count) })?;
        Ok((Elements::new(data, count as usize), offset as usize, count as usize))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("len", &self.len).finish()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the handle is this object's and is not used again.
        unsafe { sys::zero_server_release(self.handle.as_ptr()) }
    }
}
