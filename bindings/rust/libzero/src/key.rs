//! Keys of configs and of a running optimizer's scalars, and how each is typed and bounded.

use libzero_sys as sys;

use crate::enums::c_enum;
use crate::error::{check, Result};
use crate::stats::init;

c_enum! {
    /// What a [`Config`](crate::Config) holds a value for, and the names of scalars. Types, bounds and defaults stand in `zero/config.h`;
    /// [`Key::bounds`] tells them too.
    Key {
        /// How long a blocking call waits for the other ranks, in milliseconds.
        DeadlineMs = ZERO_KEY_DEADLINE_MS,
        /// How long group creation waits for the other ranks, in milliseconds.
        RendezvousMs = ZERO_KEY_RENDEZVOUS_MS,
        /// Host threads that a rank may use in kernels; 0: the cores that it may use over the ranks that may use them.
        Threads = ZERO_KEY_THREADS,
        /// Memory per rank for data that peers cannot read in place.
        StagingBytes = ZERO_KEY_STAGING_BYTES,
        /// Path of `libzero_mpi.so`.
        MpiModule = ZERO_KEY_MPI_MODULE,
        /// 1: MPI ranks of one host move data between them through shared memory; 0: through MPI.
        MpiShared = ZERO_KEY_MPI_SHARED,
        /// 1: collectives of `libzero_sys` also take memory of the CUDA device [`Key::Device`], which moves between ranks over NCCL.
        Nccl = ZERO_KEY_NCCL,
        /// Path of `libzero_nccl.so`.
        NcclModule = ZERO_KEY_NCCL_MODULE,
        /// TCP port that ranks of several hosts meet at; 0: any that is free, and under a launcher one that follows from its variables.
        RendezvousPort = ZERO_KEY_RENDEZVOUS_PORT,
        /// Name or address by which other hosts reach this one.
        RendezvousHost = ZERO_KEY_RENDEZVOUS_HOST,
        /// A non-negative integer per rank, with commas; shard sizes follow it.
        ShardWeights = ZERO_KEY_SHARD_WEIGHTS,
        /// What is sharded: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too.
        Stage = ZERO_KEY_STAGE,
        /// "sgd", "adam", "adamw", "adagrad", "lion", "lamb", "muon", "custom" or "none".
        Algorithm = ZERO_KEY_ALGORITHM,
        /// A bucket takes whole tensors until it would pass this size.
        BucketBytes = ZERO_KEY_BUCKET_BYTES,
        /// A [`Divisor`](crate::Divisor): what the sum of gradients is divided by.
        Divisor = ZERO_KEY_DIVISOR,
        /// A [`Nonfinite`](crate::Nonfinite): what a NaN or infinity in a gradient does.
        Nonfinite = ZERO_KEY_NONFINITE,
        /// 1: compute the global gradient norm in each step.
        GradNorm = ZERO_KEY_GRAD_NORM,
        /// 1: reduce and gather on a progress thread while the caller works; 0: inside calls.
        Overlap = ZERO_KEY_OVERLAP,
        /// Most bytes of gradient buckets held unreduced in stages 2 and 3; 0: no limit.
        PoolLimit = ZERO_KEY_POOL_LIMIT,
        /// fp32 slots per element that algorithm "custom" keeps.
        CustomSlots = ZERO_KEY_CUSTOM_SLOTS,
        /// Gradients are scaled down so that their global norm is at most this; 0: off.
        ClipNorm = ZERO_KEY_CLIP_NORM,
        /// Elements of gradients are clamped to this magnitude; 0: off.
        ClipValue = ZERO_KEY_CLIP_VALUE,
        /// What the caller multiplies its loss by; gradients are divided by it.
        LossScale = ZERO_KEY_LOSS_SCALE,
        /// 1: the scale follows overflows.
        LossScaleDynamic = ZERO_KEY_LOSS_SCALE_DYNAMIC,
        /// Steps without overflow after which the scale grows.
        LossScaleWindow = ZERO_KEY_LOSS_SCALE_WINDOW,
        /// Overflows before the scale backs off.
        LossScaleHysteresis = ZERO_KEY_LOSS_SCALE_HYSTERESIS,
        /// Factor of a back-off.
        LossScaleBackoff = ZERO_KEY_LOSS_SCALE_BACKOFF,
        /// Factor of a growth.
        LossScaleGrowth = ZERO_KEY_LOSS_SCALE_GROWTH,
        /// The scale is never below.
        LossScaleMin = ZERO_KEY_LOSS_SCALE_MIN,
        /// The scale is never above.
        LossScaleMax = ZERO_KEY_LOSS_SCALE_MAX,
        /// A [`Rounding`](crate::Rounding) of 16-bit parameters without master and of narrow states.
        Rounding = ZERO_KEY_ROUNDING,
        /// Of stochastic rounding.
        Seed = ZERO_KEY_SEED,
        /// An [`Unfilled`](crate::Unfilled): what becomes of parameters that no rank filled in a step.
        Unfilled = ZERO_KEY_UNFILLED,
        /// 0 or [`DType::F32`](crate::DType::F32): of sums over micro-steps on one rank.
        AccumulateDtype = ZERO_KEY_ACCUMULATE_DTYPE,
        /// 1: keep an exponential moving average of each parameter.
        Average = ZERO_KEY_AVERAGE,
        /// Tensors of fewer elements stay whole on every rank in stage 3.
        GatherBelow = ZERO_KEY_GATHER_BELOW,
        /// Most bytes of parameters gathered ahead in stage 3.
        PrefetchBytes = ZERO_KEY_PREFETCH_BYTES,
        /// Every so many steps, a step first compares each shard with what the step before it left there.
        VerifyEvery = ZERO_KEY_VERIFY_EVERY,
        /// Bytes that the ranks of a host may take together; 0: what is available.
        MemoryLimit = ZERO_KEY_MEMORY_LIMIT,
        /// Newest events kept for [`Optimizer::trace`](crate::Optimizer::trace).
        TraceEvents = ZERO_KEY_TRACE_EVENTS,
        /// Ranks of one host keep one copy of the parameters; set with [`Config::one_copy`](crate::Config::one_copy) only.
        OneCopy = ZERO_KEY_ONE_COPY,
        /// The CUDA device on which memory may lie ([`DeviceSlice`](crate::DeviceSlice)); -1: none.
        Device = ZERO_KEY_DEVICE,
        /// Path of `libzero_cuda.so`.
        CudaModule = ZERO_KEY_CUDA_MODULE,
        /// A [`Tier`](crate::Tier): where parameters, gradients and states lie.
        Tier = ZERO_KEY_TIER,
        /// Ranks of one replica; -1: those of a host ([`Optimizer::sync`](crate::Optimizer::sync)).
        ReplicaRanks = ZERO_KEY_REPLICA_RANKS,
        /// Steps from one synchronisation of replicas to the next.
        SyncPeriod = ZERO_KEY_SYNC_PERIOD,
        /// Steps before which the period is 1.
        SyncAfter = ZERO_KEY_SYNC_AFTER,
        /// Parts of the model that replicas bring together in turn.
        SyncFragments = ZERO_KEY_SYNC_FRAGMENTS,
        /// Steps from the values that replicas exchange to the use of the result.
        SyncDelay = ZERO_KEY_SYNC_DELAY,
        /// Columns, 1 to 64, of the factors of [`LineCode::LowRank`](crate::LineCode::LowRank).
        CodeRank = ZERO_KEY_CODE_RANK,
        /// A [`LineCode`](crate::LineCode): of sums of gradients between replicas.
        GradCode = ZERO_KEY_GRAD_CODE,
        /// A [`LineCode`](crate::LineCode): of the differences by which parameters follow their
        /// masters in stages 1 and 2.
        GatherCode = ZERO_KEY_GATHER_CODE,
        /// A [`LineCode`](crate::LineCode): of changes of parameters between replicas.
        SyncCode = ZERO_KEY_SYNC_CODE,
        /// Values of 256, 1 to 64, that [`LineCode::Top`](crate::LineCode::Top) keeps.
        CodeTop = ZERO_KEY_CODE_TOP,
        /// Steps before which nothing is coded.
        CodeAfter = ZERO_KEY_CODE_AFTER,
        /// A [`Residual`](crate::Residual): what becomes of rounding errors of coded gradients.
        Residual = ZERO_KEY_RESIDUAL,
        /// Steps from one that sends all in full to the next; 0: none does.
        FlushPeriod = ZERO_KEY_FLUSH_PERIOD,
        /// In stage 3, ranks over which parameters are sharded; 0: as states; -1: those of a host.
        ParamRanks = ZERO_KEY_PARAM_RANKS,
        /// A [`Neighbours`](crate::Neighbours): the replicas that the end of a period averages.
        Neighbours = ZERO_KEY_NEIGHBOURS,
        /// 0 or 1: steps by which updates lag behind their gradients.
        GradDelay = ZERO_KEY_GRAD_DELAY,
        /// `hsdp`, `diloco`, `zeropp` or `slow_link`: sets the keys of replicas that are not set.
        Strategy = ZERO_KEY_STRATEGY,
        /// The parameter set, as [`Optimizer::add_set`](crate::Optimizer::add_set) gave it.
        Set = ZERO_KEY_SET,
        /// 1: never updated: no gradient, no states.
        Frozen = ZERO_KEY_FROZEN,
        /// A [`DType`](crate::DType) of the gradient; 0: that of the parameter.
        GradDtype = ZERO_KEY_GRAD_DTYPE,
        /// A [`Master`](crate::Master): how 16-bit parameters are kept for updates.
        Master = ZERO_KEY_MASTER,
        /// A [`DType`](crate::DType): f32, bf16 or f8_e4m3.
        FirstMomentDtype = ZERO_KEY_FIRST_MOMENT_DTYPE,
        /// A [`DType`](crate::DType): f32, bf16 or f8_ue5m3.
        SecondMomentDtype = ZERO_KEY_SECOND_MOMENT_DTYPE,
        /// 1: the same on all ranks of the model group.
        Replicated = ZERO_KEY_REPLICATED,
        /// Id of an earlier parameter whose memory this one shares; then the only key.
        TiedTo = ZERO_KEY_TIED_TO,
        /// 0 or [`DType::F8E4M3`](crate::DType::F8E4M3): how a parameter is stored and gathered.
        ParamDtype = ZERO_KEY_PARAM_DTYPE,
        /// 1: gradients are given by rows ([`Optimizer::grad_ready_rows`](crate::Optimizer::grad_ready_rows)).
        Rows = ZERO_KEY_ROWS,
        /// The learning rate.
        Lr = ZERO_KEY_LR,
        /// sgd, muon.
        Momentum = ZERO_KEY_MOMENTUM,
        /// sgd.
        Dampening = ZERO_KEY_DAMPENING,
        /// 0 or 1: sgd, muon.
        Nesterov = ZERO_KEY_NESTEROV,
        /// adam, adamw, lamb, lion.
        Beta1 = ZERO_KEY_BETA1,
        /// adam, adamw, lamb, lion.
        Beta2 = ZERO_KEY_BETA2,
        /// All but sgd and lion.
        Epsilon = ZERO_KEY_EPSILON,
        /// Added to the gradient in sgd, adam, adagrad; decoupled in the others.
        WeightDecay = ZERO_KEY_WEIGHT_DECAY,
        /// adagrad.
        LrDecay = ZERO_KEY_LR_DECAY,
        /// adagrad: sum of squares before the first step.
        InitialAccumulator = ZERO_KEY_INITIAL_ACCUMULATOR,
        /// muon; a whole number.
        NewtonSchulzSteps = ZERO_KEY_NEWTON_SCHULZ_STEPS,
        /// Of the moving average of parameters.
        AverageDecay = ZERO_KEY_AVERAGE_DECAY,
        /// The rate of the outer step, which follows every synchronisation of replicas.
        OuterLr = ZERO_KEY_OUTER_LR,
        /// The momentum of the outer step.
        OuterMomentum = ZERO_KEY_OUTER_MOMENTUM,
        /// The weight of a replica's own values beside the result of the outer step.
        SyncMix = ZERO_KEY_SYNC_MIX,
        /// The momentum that [`LineCode::Top`](crate::LineCode::Top) gives gradients; only in a config.
        CodeMomentum = ZERO_KEY_CODE_MOMENTUM,
        /// Coded gradients carry the first moment of Adam, whose second stays; only in a config.
        CodeFreeze = ZERO_KEY_CODE_FREEZE,
        /// Scalar of a running optimizer: steps applied so far.
        StepCount = ZERO_KEY_STEP_COUNT,
        /// Scalar of a running optimizer: steps skipped so far.
        SkippedCount = ZERO_KEY_SKIPPED_COUNT,
        /// Scalar of a running optimizer: steps without overflow since the loss scale last changed.
        GrowthCount = ZERO_KEY_GROWTH_COUNT,
        /// Scalar of a running optimizer: overflows that hysteresis has swallowed.
        OverflowCount = ZERO_KEY_OVERFLOW_COUNT,
        /// Checkpoints: memory through which files are written and read.
        CheckpointStagingBytes = ZERO_KEY_CHECKPOINT_STAGING_BYTES,
        /// Checkpoints: newest saves of this run that are kept; 0: all.
        CheckpointKeep = ZERO_KEY_CHECKPOINT_KEEP,
        /// Checkpoints: 1: past the page cache where the file system can.
        CheckpointDirect = ZERO_KEY_CHECKPOINT_DIRECT,
        /// Checkpoints: 0: a save may be lost in a power cut.
        CheckpointSync = ZERO_KEY_CHECKPOINT_SYNC,
        /// Checkpoints: a [`Snapshot`](crate::Snapshot) of asynchronous saves.
        CheckpointSnapshot = ZERO_KEY_CHECKPOINT_SNAPSHOT,
        /// Checkpoints: a model file is not extended beyond this size.
        CheckpointFileBytes = ZERO_KEY_CHECKPOINT_FILE_BYTES,
        /// Checkpoints: longest time in which a rank may write or read nothing.
        CheckpointProgressMs = ZERO_KEY_CHECKPOINT_PROGRESS_MS,
        /// Checkpoints: 1: states of another type are converted.
        CheckpointConvert = ZERO_KEY_CHECKPOINT_CONVERT,
        /// Checkpoints: 1: what the save lacks stays as it is.
        CheckpointMissing = ZERO_KEY_CHECKPOINT_MISSING,
        /// Checkpoints: 1: what only the save has is passed over.
        CheckpointExtra = ZERO_KEY_CHECKPOINT_EXTRA,
        /// Checkpoints: 0: no files with whole parameters for other tools.
        CheckpointModelFiles = ZERO_KEY_CHECKPOINT_MODEL_FILES,
        /// Servers: the first so many ranks of the group are servers.
        ServerRanks = ZERO_KEY_SERVER_RANKS,
        /// Servers: a [`ServerOrder`](crate::ServerOrder).
        ServerOrder = ZERO_KEY_SERVER_ORDER,
        /// Servers: pushes that a worker may be ahead of the slowest.
        ServerStaleness = ZERO_KEY_SERVER_STALENESS,
        /// Servers: a [`ServerRule`](crate::ServerRule).
        ServerRule = ZERO_KEY_SERVER_RULE,
        /// Servers: the weight of a pushed value in a moving average.
        ServerRate = ZERO_KEY_SERVER_RATE,
        /// Servers: pushes of a mean; 0: as many as there are workers.
        ServerPeriod = ZERO_KEY_SERVER_PERIOD,
    }
}

/// The type of a key's value, with bounds, both inclusive, and default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// An integer.
    I64 {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
        /// What holds where nothing is set.
        default: i64,
    },
    /// A number.
    F64 {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
        /// What holds where nothing is set.
        default: f64,
    },
    /// A text.
    Str,
}

impl Key {
    /// Type, bounds and default of the key.
    ///
    /// ```
    /// use libzero::{Bounds, Key};
    ///
    /// assert_eq!(Key::Stage.bounds()?, Bounds::I64 { min: 0, max: 3, default: 1 });
    /// assert!(Key::Other(99999).bounds().is_err());
    /// # Ok::<(), libzero::Error>(())
    /// ```
    pub fn bounds(self) -> Result<Bounds> {
        const F64: i64 = 2;
        const STR: i64 = 3;
        let mut found: sys::zero_key_bounds = init(sys::zero_key_bounds_init)?;
        // SAFETY: `found` knows its own size.
        check(unsafe { sys::zero_config_bounds(self.raw(), &mut found) })?;
        Ok(match found.type_ {
            F64 => Bounds::F64 { min: found.min_f64, max: found.max_f64, default: found.default_f64 },
            STR => Bounds::Str,
            _ => Bounds::I64 { min: found.min_i64, max: found.max_i64, default: found.default_i64 },
        })
    }
}
