//! The C API's enums. A number without a name here stays what it is, in the variant `Other`: a newer library may know more.

use libzero_sys as sys;

mod replicas;

pub use replicas::{LineCode, Neighbours, Residual};

macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $constant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$item_doc])* $item,)*
            /// A number that this version of the crate has no name for.
            Other(i32),
        }

        impl $name {
            /// What the C API means by this number.
            pub const fn from_raw(raw: i32) -> Self {
                match raw {
                    $(sys::$constant => Self::$item,)*
                    other => Self::Other(other),
                }
            }

            /// The number in the C API.
            pub const fn raw(self) -> i32 {
                match self {
                    $(Self::$item => sys::$constant,)*
                    Self::Other(raw) => raw,
                }
            }

            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($constant)),*];
        }
    };
}
pub(crate) use c_enum;

c_enum! {
    /// The codes of errors (`zero/status.h`). [`Code::scope`] tells what was lost.
    Code {
        /// An argument is out of bounds or inconsistent with another.
        InvalidArgument = ZERO_E_INVALID_ARGUMENT,
        /// The handle was released, never made, or names an object of another kind.
        BadHandle = ZERO_E_BAD_HANDLE,
        /// An unknown key, or a combination that this build or machine cannot do.
        Unsupported = ZERO_E_UNSUPPORTED,
        /// The call is not allowed in the object's present state.
        State = ZERO_E_STATE,
        /// Memory is short.
        OutOfMemory = ZERO_E_OUT_OF_MEMORY,
        /// Reserved: another thread is using this object.
        Busy = ZERO_E_BUSY,
        /// `libzero_mpi.so`, `libzero_cuda.so` or `libzero_nccl.so`, or the library it needs, is missing or from another build.
        Module = ZERO_E_MODULE,
        /// The ranks of a new group did not meet.
        Rendezvous = ZERO_E_RENDEZVOUS,
        /// The operating system refused something.
        System = ZERO_E_SYSTEM,
        /// The launcher's variables contradict each other or name a transport that is not there.
        Launcher = ZERO_E_LAUNCHER,
        /// CUDA offers no such device.
        Device = ZERO_E_DEVICE,
        /// A save is damaged, or of another model.
        Checkpoint = ZERO_E_CHECKPOINT,
        /// There is no committed save: only then start anew.
        NotFound = ZERO_E_NOT_FOUND,
        /// First values claimed to be equal on all ranks are not.
        ReplicasDiffer = ZERO_E_REPLICAS_DIFFER,
        /// Gradients arrived so far out of order that the pool would pass its limit.
        PoolLimit = ZERO_E_POOL_LIMIT,
        /// Data in memory was changed by something other than libzero.
        Corrupt = ZERO_E_CORRUPT,
        /// CUDA reported an error while memory of a device was read or written.
        DeviceFailed = ZERO_E_DEVICE_FAILED,
        /// A rank did not arrive within the deadline.
        Timeout = ZERO_E_TIMEOUT,
        /// A rank's process ended.
        PeerLost = ZERO_E_PEER_LOST,
        /// A rank dropped its group while others still used it.
        PeerLeft = ZERO_E_PEER_LEFT,
        /// A rank met an error inside a collective.
        PeerFailed = ZERO_E_PEER_FAILED,
        /// Ranks called different collectives.
        Mismatch = ZERO_E_MISMATCH,
        /// A rank called [`Group::abort`](crate::Group::abort).
        Aborted = ZERO_E_ABORTED,
        /// The transport (MPI, shared memory) reported an error.
        Transport = ZERO_E_TRANSPORT,
        /// The process forked after libzero was first used.
        Forked = ZERO_E_FORKED,
        /// A defect in libzero.
        Internal = ZERO_E_INTERNAL,
    }
}

c_enum! {
    /// Types of elements (`zero/dtype.h`).
    DType {
        /// [`f32`].
        F32 = ZERO_DTYPE_F32,
        /// [`f64`].
        F64 = ZERO_DTYPE_F64,
        /// [`F16`](crate::F16).
        F16 = ZERO_DTYPE_F16,
        /// [`Bf16`](crate::Bf16).
        Bf16 = ZERO_DTYPE_BF16,
        /// [`i32`].
        I32 = ZERO_DTYPE_I32,
        /// [`i64`].
        I64 = ZERO_DTYPE_I64,
        /// [`u8`].
        U8 = ZERO_DTYPE_U8,
        /// [`u16`], only in slots: what a bf16 parameter lacks of its fp32 master.
        U16 = ZERO_DTYPE_U16,
        /// [`F8E4M3`](crate::F8E4M3), only in slots.
        F8E4M3 = ZERO_DTYPE_F8_E4M3,
        /// [`F8Ue5M3`](crate::F8Ue5M3), only in slots.
        F8Ue5M3 = ZERO_DTYPE_F8_UE5M3,
    }
}

c_enum! {
    /// How values of several ranks become one (`zero/group.h`).
    ReduceOp {
        /// The sum.
        Sum = ZERO_REDUCE_SUM,
        /// The sum divided by the number of ranks.
        Avg = ZERO_REDUCE_AVG,
        /// The least; NaN when any is NaN.
        Min = ZERO_REDUCE_MIN,
        /// The greatest; NaN when any is NaN.
        Max = ZERO_REDUCE_MAX,
        /// The product.
        Prod = ZERO_REDUCE_PROD,
    }
}

c_enum! {
    /// Operations, as statistics name them.
    Operation {
        /// [`Group::barrier`](crate::Group::barrier).
        Barrier = ZERO_OPERATION_BARRIER,
        /// [`Group::broadcast`](crate::Group::broadcast).
        Broadcast = ZERO_OPERATION_BROADCAST,
        /// [`Group::all_reduce`](crate::Group::all_reduce).
        AllReduce = ZERO_OPERATION_ALL_REDUCE,
        /// [`Group::reduce_scatter`](crate::Group::reduce_scatter).
        ReduceScatter = ZERO_OPERATION_REDUCE_SCATTER,
        /// [`Group::all_gather`](crate::Group::all_gather).
        AllGather = ZERO_OPERATION_ALL_GATHER,
        /// [`Group::reduce`](crate::Group::reduce).
        Reduce = ZERO_OPERATION_REDUCE,
        /// [`Group::gather`](crate::Group::gather).
        Gather = ZERO_OPERATION_GATHER,
        /// [`Group::scatter`](crate::Group::scatter).
        Scatter = ZERO_OPERATION_SCATTER,
        /// [`Group::all_to_all`](crate::Group::all_to_all).
        AllToAll = ZERO_OPERATION_ALL_TO_ALL,
        /// [`Group::send`](crate::Group::send).
        Send = ZERO_OPERATION_SEND,
        /// [`Group::recv`](crate::Group::recv).
        Recv = ZERO_OPERATION_RECV,
    }
}

c_enum! {
    /// How 16-bit parameters without master and narrow states are rounded ([`Key::Rounding`](crate::Key::Rounding)).
    Rounding {
        /// To nearest, ties to even.
        Nearest = ZERO_ROUNDING_NEAREST,
        /// Up or down with probabilities that keep the mean.
        Stochastic = ZERO_ROUNDING_STOCHASTIC,
    }
}

c_enum! {
    /// The order in which servers apply what workers push ([`Key::ServerOrder`](crate::Key::ServerOrder)).
    ServerOrder {
        /// In rounds, by rank.
        RoundRobin = ZERO_SERVER_ORDER_ROUND_ROBIN,
        /// As they arrive, within the bound of staleness.
        Arrival = ZERO_SERVER_ORDER_ARRIVAL,
    }
}

c_enum! {
    /// What a push holds, and what servers do with it ([`Key::ServerRule`](crate::Key::ServerRule)).
    ServerRule {
        /// A gradient: one step of the algorithm.
        Update = ZERO_SERVER_RULE_UPDATE,
        /// Parameters: a moving average.
        Average = ZERO_SERVER_RULE_AVERAGE,
        /// Parameters: the mean of every few pushes.
        Mean = ZERO_SERVER_RULE_MEAN,
    }
}

c_enum! {
    /// How an asynchronous save keeps what it saves ([`Key::CheckpointSnapshot`](crate::Key::CheckpointSnapshot)).
    Snapshot {
        /// It copies all that this rank saves.
        Copy = ZERO_SNAPSHOT_COPY,
        /// It reads the optimizer's memory until the next update.
        Lazy = ZERO_SNAPSHOT_LAZY,
    }
}

c_enum! {
    /// What becomes of parameters that no rank filled in a step ([`Key::Unfilled`](crate::Key::Unfilled)).
    Unfilled {
        /// Their gradient counts as zero.
        Zero = ZERO_UNFILLED_ZERO,
        /// Parameter and states stay as they are.
        Untouched = ZERO_UNFILLED_UNTOUCHED,
    }
}

c_enum! {
    /// How 16-bit parameters are kept for updates ([`Key::Master`](crate::Key::Master)).
    Master {
        /// An fp32 copy.
        F32 = ZERO_MASTER_F32,
        /// The 16-bit parameter itself is updated.
        None = ZERO_MASTER_NONE,
        /// The 16 bits that bf16 parameters lack of an fp32 copy.
        Remainder = ZERO_MASTER_REMAINDER,
    }
}

c_enum! {
    /// What the sum of gradients is divided by ([`Key::Divisor`](crate::Key::Divisor)).
    Divisor {
        /// The number of ranks.
        Ranks = ZERO_DIVISOR_RANKS,
        /// Nothing: a plain sum.
        One = ZERO_DIVISOR_ONE,
        /// The sum of the ranks' weights ([`Optimizer::set_weight`](crate::Optimizer::set_weight)), by which gradients are multiplied.
        Weights = ZERO_DIVISOR_WEIGHTS,
    }
}

c_enum! {
    /// What a NaN or infinity in a gradient does ([`Key::Nonfinite`](crate::Key::Nonfinite)).
    Nonfinite {
        /// All ranks skip the same step.
        Skip = ZERO_NONFINITE_SKIP,
        /// Nothing: gradients are not looked at.
        Propagate = ZERO_NONFINITE_PROPAGATE,
    }
}

c_enum! {
    /// Where parameters, gradients and states lie ([`Key::Tier`](crate::Key::Tier)).
    Tier {
        /// In the host's memory.
        Host = ZERO_TIER_HOST,
        /// In a CUDA device's, as [`DeviceSlice`](crate::DeviceSlice) ([`Optimizer::param_device`](crate::Optimizer::param_device)).
        Device = ZERO_TIER_DEVICE,
    }
}

c_enum! {
    /// Which ranks have a tensor of the program ([`Checkpoint::add_tensor`](crate::Checkpoint::add_tensor)).
    TensorScope {
        /// Rank 0's is saved; a load gives it to all ranks.
        One = ZERO_SCOPE_ONE,
        /// Every rank saves its own.
        Each = ZERO_SCOPE_EACH,
    }
}

c_enum! {
    /// The form of a text about saves ([`Save::describe`](crate::Save::describe)).
    TextForm {
        /// Lines for people.
        Plain = ZERO_TEXT_PLAIN,
        /// One JSON value for programs.
        Json = ZERO_TEXT_JSON,
    }
}

c_enum! {
    /// What a load takes out of a save ([`Checkpoint::load`](crate::Checkpoint::load)).
    Part {
        /// Everything.
        All = ZERO_PART_ALL,
        /// Values of parameters alone.
        Params = ZERO_PART_PARAMS,
    }
}

c_enum! {
    /// What is kept per element of a parameter (`zero/optimizer.h`).
    Slot {
        /// The parameter as it is stored.
        Param = ZERO_SLOT_PARAM,
        /// The gradient, between [`Optimizer::reduce`](crate::Optimizer::reduce) and
        /// [`Reduction::gather`](crate::Reduction::gather).
        Grad = ZERO_SLOT_GRAD,
        /// The master of a 16-bit or 8-bit parameter.
        Master = ZERO_SLOT_MASTER,
        /// The moving average of the parameter, with [`Key::Average`](crate::Key::Average).
        Average = ZERO_SLOT_AVERAGE,
        /// One f32 per 256 elements of an 8-bit parameter.
        ParamScale = ZERO_SLOT_PARAM_SCALE,
        /// What all replicas last had in common, with [`Key::SyncPeriod`](crate::Key::SyncPeriod) above 1.
        Anchor = ZERO_SLOT_ANCHOR,
        /// One i64 per parameter, with [`Unfilled::Untouched`]: the steps that updated it.
        UpdateCount = ZERO_SLOT_UPDATE_COUNT,
        /// sgd: the momentum buffer; adam, adamw: m.
        FirstMoment = ZERO_SLOT_FIRST_MOMENT,
        /// adam, adamw: v.
        SecondMoment = ZERO_SLOT_SECOND_MOMENT,
        /// The momentum of the outer step, with [`Key::OuterMomentum`](crate::Key::OuterMomentum).
        OuterMoment = ZERO_SLOT_OUTER_MOMENT,
        /// One f32 per 256 elements of an 8-bit first moment.
        FirstScale = ZERO_SLOT_FIRST_SCALE,
        /// One f32 per 256 elements of an 8-bit second moment.
        SecondScale = ZERO_SLOT_SECOND_SCALE,
        /// The first slot of algorithm "custom"; [`Slot::custom`] names the others.
        Custom = ZERO_SLOT_CUSTOM,
    }
}

impl Slot {
    /// Slot `index`, from 0, of algorithm "custom".
    pub const fn custom(index: i32) -> Self {
        Self::from_raw(sys::ZERO_SLOT_CUSTOM + index)
    }
}

c_enum! {
    /// Where first values come from ([`Optimizer::begin`](crate::Optimizer::begin)).
    Source {
        /// Every rank wrote the same values; that is checked.
        Local = ZERO_SOURCE_LOCAL,
        /// Rank 0 wrote them; the others receive them.
        Root = ZERO_SOURCE_ROOT,
        /// They were written by range ([`Optimizer::write`](crate::Optimizer::write)) or made in place
        /// ([`Optimizer::init_param`](crate::Optimizer::init_param)).
        Shards = ZERO_SOURCE_SHARDS,
    }
}

c_enum! {
    /// How a module buffer is brought in line ([`Optimizer::sync_module_buffers`](crate::Optimizer::sync_module_buffers)).
    SyncRule {
        /// Each rank keeps its own.
        None = ZERO_SYNC_NONE,
        /// The mean over ranks.
        Average = ZERO_SYNC_AVERAGE,
        /// That of rank 0.
        Broadcast = ZERO_SYNC_BROADCAST,
    }
}

c_enum! {
    /// What [`Optimizer::verify`](crate::Optimizer::verify) found.
    Finding {
        /// Memory holds what libzero wrote.
        None = ZERO_FINDING_NONE,
        /// A rank's own part is not what the last step left there.
        Shard = ZERO_FINDING_SHARD,
        /// Ranks that must hold the same bits do not.
        Replicas = ZERO_FINDING_REPLICAS,
    }
}

c_enum! {
    /// What becomes of the gradients of a micro-step ([`Optimizer::micro_step`](crate::Optimizer::micro_step)).
    MicroStep {
        /// Reduced, together with what local micro-steps left, as they become ready; the step follows.
        Last = ZERO_MICRO_STEP_LAST,
        /// Added up on this rank, without communication.
        Local = ZERO_MICRO_STEP_LOCAL,
        /// Reduced as they become ready, and added to sums of the elements that this rank owns.
        Reduce = ZERO_MICRO_STEP_REDUCE,
    }
}

c_enum! {
    /// What memory is for (`zero/stats.h`).
    Memory {
        /// Everything.
        Total = ZERO_MEMORY_TOTAL,
        /// Parameters that this rank keeps.
        Param = ZERO_MEMORY_PARAM,
        /// Gradients that this rank keeps.
        Grad = ZERO_MEMORY_GRAD,
        /// Optimizer states.
        State = ZERO_MEMORY_STATE,
        /// Stages 2 and 3: buckets of gradients not yet reduced.
        GradPool = ZERO_MEMORY_GRAD_POOL,
        /// Stage 3: gathered parameters; before begin whole first values.
        ParamPool = ZERO_MEMORY_PARAM_POOL,
        /// Shared memory of the optimizer's groups.
        Staging = ZERO_MEMORY_STAGING,
        /// Sharded buffers.
        Buffer = ZERO_MEMORY_BUFFER,
        /// Gradients that micro-steps add up.
        Accumulated = ZERO_MEMORY_ACCUMULATED,
        /// Module buffers.
        ModuleBuffer = ZERO_MEMORY_MODULE_BUFFER,
        /// Workspaces of algorithms "muon" and "lamb" and of 8-bit parameters.
        Workspace = ZERO_MEMORY_WORKSPACE,
    }
}

c_enum! {
    /// What a build of libzero may or may not be able to do (`zero/zero.h`).
    Feature {
        /// Groups of threads and processes of one host.
        Local = ZERO_FEATURE_LOCAL,
        /// Groups of MPI ranks: `libzero_mpi.so` and the MPI library it needs can be loaded.
        Mpi = ZERO_FEATURE_MPI,
        /// Optimizers for memory of devices: `libzero_cuda.so` can be loaded and CUDA offers a device.
        Cuda = ZERO_FEATURE_CUDA,
        /// Groups that move memory of devices: `libzero_nccl.so` and an NCCL that it works with can be loaded.
        Nccl = ZERO_FEATURE_NCCL,
    }
}

#[cfg(test)]
mod tests;
