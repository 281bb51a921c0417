//! Process groups: their making, what they know of themselves, and their end.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libzero_sys as sys;

use crate::abi;
use crate::config::{c_text, config_ptr, Config};
use crate::error::{check, Result};
use crate::text;

/// A process group: ranks that call the same collectives in the same order.
///
/// ```
/// use libzero::{Group, ReduceOp};
/// use std::thread;
///
/// let name = "doc-group";
/// # let name = &format!("{name}.{}", std::process::id());
/// thread::scope(|scope| {
///     for rank in 0..3 {
///         scope.spawn(move || {
///             let group = Group::local(name, rank, 3, None).unwrap();
///             let mut sum = [0.0f32; 2];
///             group.all_reduce(&[rank as f32, 1.0], &mut sum, ReduceOp::Sum).unwrap();
///             assert_eq!(sum, [3.0, 3.0]);
///         });
///     }
/// });
/// ```
///
/// A group is [`Send`] and [`Sync`]: calls from several threads are run one after another in the order they come in, so all ranks must
/// bring them in the same order. [`abort`](Group::abort) and the methods that ask may be called while other threads wait in the group.
///
/// Dropping the group gives this rank's hold on it back; buffers and optimizers made from it keep it alive. When the last of them goes,
/// ranks that still wait in the group get [`Code::PeerLeft`](crate::Code::PeerLeft).
#[derive(Debug)]
pub struct Group {
    handle: NonNull<sys::zero_group>,
}

// SAFETY: zero/group.h, "Threads": calls from several threads are run one after another; all that are no collectives may be made by any
// thread at any time.
unsafe impl Send for Group {}
// SAFETY: as above.
unsafe impl Sync for Group {}

/// The communicator that stands for `MPI_COMM_WORLD` in [`Group::mpi`].
pub const MPI_WORLD: i64 = sys::ZERO_MPI_WORLD;

/// `stream` of the C API is for addresses on devices; methods of groups and buffers take slices.
pub(crate) const NO_STREAM: *mut c_void = ptr::null_mut();

/// zero/group.h: groups of a launcher are made by one thread of the process at a time.
static LAUNCHED: Mutex<()> = Mutex::new(());

impl Group {
    /// A group of `size` ranks of this host, threads or processes, that meet by name.
    pub fn local(name: &str, rank: usize, size: usize, config: Option<&Config>) -> Result<Self> {
        let name = c_text("name", name)?;
        // SAFETY: the name ends with a NUL, and a config has its handle.
        Self::create(|out| unsafe { sys::zero_group_create_local(name.as_ptr(), rank as i64, size as i64, config_ptr(config), out) })
    }

    /// A world of one.
    pub fn alone(config: Option<&Config>) -> Result<Self> {
        // SAFETY: without a name the size must be 1, and a config has its handle.
        Self::create(|out| unsafe { sys::zero_group_create_local(ptr::null(), 0, 1, config_ptr(config), out) })
    }

    /// A group of the ranks of an MPI communicator, given as its Fortran handle, or of [`MPI_WORLD`].
    pub fn mpi(comm: i64, config: Option<&Config>) -> Result<Self> {
        let _one_at_a_time = LAUNCHED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a config has its handle.
        Self::create(|out| unsafe { sys::zero_group_create_mpi(comm, config_ptr(config), out) })
    }

    /// A group of ranks of any hosts, each with the CUDA device of [`Key::Device`](crate::Key::Device), that meet by an id of
    /// [`Group::unique_id`], which the program carries to all of them.
    pub fn nccl(id: &str, rank: usize, size: usize, config: Option<&Config>) -> Result<Self> {
        let id = c_text("id", id)?;
        // SAFETY: the id ends with a NUL, and a config has its handle.
        Self::create(|out| unsafe { sys::zero_group_create_nccl(id.as_ptr(), rank as i64, size as i64, config_ptr(config), out) })
    }

    /// Makes an id for [`Group::nccl`]. This process listens from now on, and is where rank 0 must be created.
    pub fn unique_id(config: Option<&Config>) -> Result<String> {
        abi::check()?;
        // SAFETY: a config has its handle; the rest is as text::read says.
        text::read(|out, nbytes, needed| unsafe { sys::zero_group_unique_id(config_ptr(config), out, nbytes, needed) })
    }

    /// The group that the launcher's variables describe (Open MPI, MPICH, Slurm, torchrun); without a launcher a world of one.
    pub fn env(config: Option<&Config>) -> Result<Self> {
        let _one_at_a_time = LAUNCHED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a config has its handle.
        Self::create(|out| unsafe { sys::zero_group_create_env(config_ptr(config), out) })
    }

    /// Names the variable in which a launcher says how many ranks it started, for example
    /// "OMPI_COMM_WORLD_SIZE"; empty where none started this process. A program that starts ranks
    /// of its own asks first.
    pub fn launcher() -> Result<String> {
        abi::check()?;
        // SAFETY: as text::read says.
        text::read(|out, nbytes, needed| unsafe { sys::zero_group_launcher(out, nbytes, needed) })
    }

    /// Splits the group: ranks with the same color form one group, ordered by key, then by rank. `None` for a negative color. A collective.
    pub fn split(&self, color: i64, key: i64) -> Result<Option<Self>> {
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is the group's, and `handle` receives the new one.
        check(unsafe { sys::zero_group_split(self.as_ptr(), color, key, &mut handle) })?;
        Ok(NonNull::new(handle).map(|handle| Group { handle }))
    }

    /// This rank, from 0.
    pub fn rank(&self) -> Result<usize> {
        self.place(sys::zero_group_rank)
    }

    /// The number of ranks.
    pub fn size(&self) -> Result<usize> {
        self.place(sys::zero_group_size)
    }

    /// This rank among those on this host.
    pub fn local_rank(&self) -> Result<usize> {
        self.place(sys::zero_group_local_rank)
    }

    /// The number of ranks on this host.
    pub fn local_size(&self) -> Result<usize> {
        self.place(sys::zero_group_local_size)
    }

    /// The number of hosts.
    pub fn host_count(&self) -> Result<usize> {
        self.place(sys::zero_group_host_count)
    }

    /// Which of `count` elements a rank owns in [`reduce_scatter`](Group::reduce_scatter), [`all_gather`](Group::all_gather),
    /// [`gather`](Group::gather) and [`scatter`](Group::scatter).
    pub fn share(&self, count: usize, rank: usize) -> Result<Range<usize>> {
        let (mut offset, mut share) = (0, 0);
        // SAFETY: the handle is the group's, and the results go to locals.
        check(unsafe { sys::zero_group_share(self.as_ptr(), count as i64, rank as i64, &mut offset, &mut share) })?;
        Ok(offset as usize..(offset + share) as usize)
    }

    /// The error that poisoned the group, if one did.
    pub fn status(&self) -> Result<()> {
        // SAFETY: the handle is the group's.
        check(unsafe { sys::zero_group_status(self.as_ptr()) })
    }

    /// Poisons the group, those split from it and the optimizers made from it, on every rank; whoever waits in them returns at once.
    pub fn abort(&self, reason: &str) -> Result<()> {
        let reason = c_text("reason", reason)?;
        // SAFETY: the handle is the group's, and the text ends with a NUL.
        check(unsafe { sys::zero_group_abort(self.as_ptr(), reason.as_ptr()) })
    }

    /// How long later calls of this rank wait for the others; in whole milliseconds, rounded up.
    pub fn set_deadline(&self, deadline: Duration) -> Result<()> {
        const NS_PER_MS: u128 = 1_000_000;
        let deadline_ms = (deadline.as_nanos() + NS_PER_MS - 1) / NS_PER_MS;
        let deadline_ms = i64::try_from(deadline_ms).unwrap_or(i64::MAX);
        // SAFETY: the handle is the group's.
        check(unsafe { sys::zero_group_set_deadline(self.as_ptr(), deadline_ms) })
    }

    /// Whether memory that was given to calls is the caller's again after a failure. Without [`Key::Nccl`](crate::Key::Nccl) always. With
    /// it `false` while NCCL, in this process, may still read or write memory of a call that failed: such memory must then not be freed or
    /// used.
    pub fn quiet(&self) -> Result<bool> {
        Ok(self.place(sys::zero_group_quiet)? == 1)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::zero_group {
        self.handle.as_ptr()
    }

    fn create(create: impl FnOnce(*mut *mut sys::zero_group) -> i32) -> Result<Self> {
        abi::check()?;
        let mut handle = ptr::null_mut();
        check(create(&mut handle))?;
        Ok(Group { handle: NonNull::new(handle).expect("a new group has a handle") })
    }

    fn place(&self, ask: unsafe extern "C" fn(*const sys::zero_group, *mut i64) -> i32) -> Result<usize> {
        let mut place = 0;
        // SAFETY: the handle is the group's, and the result goes to a local.
        check(unsafe { ask(self.as_ptr(), &mut place) })?;
        Ok(place as usize)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the handle is this group's and is not used again.
        unsafe { sys::zero_group_release(self.handle.as_ptr()) }
    }
}
