package zero

import "example.org/libzero/bindings/go/internal/czero"

// Key names a setting of a Config, a hyper-parameter or a scalar of an Optimizer. Bounds tells the type and bounds of each; zero/config.h
// says what it does.
type Key int32

// Keys of groups.
const (
	KeyDeadlineMS     = Key(czero.ZERO_KEY_DEADLINE_MS)     // i64
	KeyRendezvousMS   = Key(czero.ZERO_KEY_RENDEZVOUS_MS)   // i64
	KeyThreads        = Key(czero.ZERO_KEY_THREADS)         // i64
	KeyStagingBytes   = Key(czero.ZERO_KEY_STAGING_BYTES)   // i64
	KeyMPIModule      = Key(czero.ZERO_KEY_MPI_MODULE)      // str
	KeyMPIShared      = Key(czero.ZERO_KEY_MPI_SHARED)      // i64
	KeyNCCL           = Key(czero.ZERO_KEY_NCCL)            // i64, for memory of devices, which C calls take
	KeyNCCLModule     = Key(czero.ZERO_KEY_NCCL_MODULE)     // str
	KeyRendezvousPort = Key(czero.ZERO_KEY_RENDEZVOUS_PORT) // i64
	KeyRendezvousHost = Key(czero.ZERO_KEY_RENDEZVOUS_HOST) // str
)

// Keys of buffers and partitions.
const (
	KeyShardWeights = Key(czero.ZERO_KEY_SHARD_WEIGHTS) // str
)

// Keys of optimizers.
const (
	KeyStage               = Key(czero.ZERO_KEY_STAGE)                 // i64
	KeyAlgorithm           = Key(czero.ZERO_KEY_ALGORITHM)             // str
	KeyBucketBytes         = Key(czero.ZERO_KEY_BUCKET_BYTES)          // i64
	KeyDivisor             = Key(czero.ZERO_KEY_DIVISOR)               // i64, a Divisor
	KeyNonfinite           = Key(czero.ZERO_KEY_NONFINITE)             // i64, a Nonfinite
	KeyGradNorm            = Key(czero.ZERO_KEY_GRAD_NORM)             // i64
	KeyOverlap             = Key(czero.ZERO_KEY_OVERLAP)               // i64
	KeyPoolLimit           = Key(czero.ZERO_KEY_POOL_LIMIT)            // i64
	KeyCustomSlots         = Key(czero.ZERO_KEY_CUSTOM_SLOTS)          // i64
	KeyClipNorm            = Key(czero.ZERO_KEY_CLIP_NORM)             // f64
	KeyClipValue           = Key(czero.ZERO_KEY_CLIP_VALUE)            // f64
	KeyLossScale           = Key(czero.ZERO_KEY_LOSS_SCALE)            // f64
	KeyLossScaleDynamic    = Key(czero.ZERO_KEY_LOSS_SCALE_DYNAMIC)    // i64
	KeyLossScaleWindow     = Key(czero.ZERO_KEY_LOSS_SCALE_WINDOW)     // i64
	KeyLossScaleHysteresis = Key(czero.ZERO_KEY_LOSS_SCALE_HYSTERESIS) // i64
	KeyLossScaleBackoff    = Key(czero.ZERO_KEY_LOSS_SCALE_BACKOFF)    // f64
	KeyLossScaleGrowth     = Key(czero.ZERO_KEY_LOSS_SCALE_GROWTH)     // f64
	KeyLossScaleMin        = Key(czero.ZERO_KEY_LOSS_SCALE_MIN)        // f64
	KeyLossScaleMax        = Key(czero.ZERO_KEY_LOSS_SCALE_MAX)        // f64
	KeyRounding            = Key(czero.ZERO_KEY_ROUNDING)              // i64, a Rounding
	KeySeed                = Key(czero.ZERO_KEY_SEED)                  // i64
	KeyUnfilled            = Key(czero.ZERO_KEY_UNFILLED)              // i64, an Unfilled
	KeyAccumulateDType     = Key(czero.ZERO_KEY_ACCUMULATE_DTYPE)      // i64, 0 or DTypeF32
	KeyAverage             = Key(czero.ZERO_KEY_AVERAGE)               // i64
	KeyGatherBelow         = Key(czero.ZERO_KEY_GATHER_BELOW)          // i64
	KeyPrefetchBytes       = Key(czero.ZERO_KEY_PREFETCH_BYTES)        // i64
	KeyVerifyEvery         = Key(czero.ZERO_KEY_VERIFY_EVERY)          // i64
	KeyMemoryLimit         = Key(czero.ZERO_KEY_MEMORY_LIMIT)          // i64
	KeyTraceEvents         = Key(czero.ZERO_KEY_TRACE_EVENTS)          // i64
	KeyOneCopy             = Key(czero.ZERO_KEY_ONE_COPY)              // i64
	KeyDevice              = Key(czero.ZERO_KEY_DEVICE)                // i64; DeviceSlice
	KeyCUDAModule          = Key(czero.ZERO_KEY_CUDA_MODULE)           // str
	KeyTier                = Key(czero.ZERO_KEY_TIER)                  // i64, a Tier; only TierHost, because slices are the host's
	KeyReplicaRanks        = Key(czero.ZERO_KEY_REPLICA_RANKS)         // i64: ranks of one replica; -1: those of a host
	KeySyncPeriod          = Key(czero.ZERO_KEY_SYNC_PERIOD)           // i64: steps from one synchronisation of replicas to the next
	KeySyncAfter           = Key(czero.ZERO_KEY_SYNC_AFTER)            // i64: steps before which the period is 1
	KeySyncFragments       = Key(czero.ZERO_KEY_SYNC_FRAGMENTS)        // i64: parts of the model that replicas bring together in turn
	KeySyncDelay           = Key(czero.ZERO_KEY_SYNC_DELAY)            // i64: steps from the values that replicas exchange to the use of the result
	KeyCodeRank            = Key(czero.ZERO_KEY_CODE_RANK)             // i64, 1 to 64: of the factors of LineCodeLowRank
	KeyGradCode            = Key(czero.ZERO_KEY_GRAD_CODE)             // i64, a LineCode: of sums of gradients between replicas
	KeyGatherCode          = Key(czero.ZERO_KEY_GATHER_CODE)           // i64, a LineCode: of differences by which parameters follow their masters
	KeySyncCode            = Key(czero.ZERO_KEY_SYNC_CODE)             // i64, a LineCode: of changes of parameters between replicas
	KeyCodeTop             = Key(czero.ZERO_KEY_CODE_TOP)              // i64, 1 to 64: values of 256 that LineCodeTop keeps
	KeyCodeAfter           = Key(czero.ZERO_KEY_CODE_AFTER)            // i64: steps before which nothing is coded
	KeyResidual            = Key(czero.ZERO_KEY_RESIDUAL)              // i64, a Residual: what becomes of rounding errors of coded gradients
	KeyFlushPeriod         = Key(czero.ZERO_KEY_FLUSH_PERIOD)          // i64: steps from one that sends all in full to the next; 0: none does
	KeyParamRanks          = Key(czero.ZERO_KEY_PARAM_RANKS)           // i64: in stage 3, ranks over which parameters are sharded; 0: as states; -1: those of a host
	KeyNeighbours          = Key(czero.ZERO_KEY_NEIGHBOURS)            // i64, a Neighbours: the replicas that the end of a period averages
	KeyGradDelay           = Key(czero.ZERO_KEY_GRAD_DELAY)            // i64, 0 or 1: steps by which updates lag behind their gradients
	KeyStrategy            = Key(czero.ZERO_KEY_STRATEGY)              // str: "hsdp", "diloco", "zeropp" or "slow_link"
)

// Keys of parameters.
const (
	KeySet               = Key(czero.ZERO_KEY_SET)                 // i64, of Optimizer.AddSet
	KeyFrozen            = Key(czero.ZERO_KEY_FROZEN)              // i64
	KeyGradDType         = Key(czero.ZERO_KEY_GRAD_DTYPE)          // i64, a DType
	KeyMaster            = Key(czero.ZERO_KEY_MASTER)              // i64, a Master
	KeyFirstMomentDType  = Key(czero.ZERO_KEY_FIRST_MOMENT_DTYPE)  // i64, a DType
	KeySecondMomentDType = Key(czero.ZERO_KEY_SECOND_MOMENT_DTYPE) // i64, a DType
	KeyReplicated        = Key(czero.ZERO_KEY_REPLICATED)          // i64
	KeyTiedTo            = Key(czero.ZERO_KEY_TIED_TO)             // i64, the id of another parameter
	KeyRows              = Key(czero.ZERO_KEY_ROWS)                // i64, 1: gradients are given by rows (GiveGradRows)
	KeyParamDType        = Key(czero.ZERO_KEY_PARAM_DTYPE)         // i64, a DType
)

// Hyper-parameters, all f64: also for Optimizer.SetF64.
const (
	KeyLR                 = Key(czero.ZERO_KEY_LR)
	KeyMomentum           = Key(czero.ZERO_KEY_MOMENTUM)
	KeyDampening          = Key(czero.ZERO_KEY_DAMPENING)
	KeyNesterov           = Key(czero.ZERO_KEY_NESTEROV)
	KeyBeta1              = Key(czero.ZERO_KEY_BETA1)
	KeyBeta2              = Key(czero.ZERO_KEY_BETA2)
	KeyEpsilon            = Key(czero.ZERO_KEY_EPSILON)
	KeyWeightDecay        = Key(czero.ZERO_KEY_WEIGHT_DECAY)
	KeyLRDecay            = Key(czero.ZERO_KEY_LR_DECAY)
	KeyInitialAccumulator = Key(czero.ZERO_KEY_INITIAL_ACCUMULATOR)
	KeyNewtonSchulzSteps  = Key(czero.ZERO_KEY_NEWTON_SCHULZ_STEPS)
	KeyAverageDecay       = Key(czero.ZERO_KEY_AVERAGE_DECAY)
	KeyOuterLR            = Key(czero.ZERO_KEY_OUTER_LR)       // of synchronisations of replicas
	KeyOuterMomentum      = Key(czero.ZERO_KEY_OUTER_MOMENTUM) // of synchronisations of replicas
	KeySyncMix            = Key(czero.ZERO_KEY_SYNC_MIX)       // of synchronisations of replicas
	KeyCodeMomentum       = Key(czero.ZERO_KEY_CODE_MOMENTUM)  // of gradients before LineCodeTop; only in a Config
	KeyCodeFreeze         = Key(czero.ZERO_KEY_CODE_FREEZE)    // an i64: codes of gradients carry the first moment; only in a Config
)

// Scalars of a running optimizer, all i64: for Optimizer.SetI64.
const (
	KeyStepCount     = Key(czero.ZERO_KEY_STEP_COUNT)
	KeySkippedCount  = Key(czero.ZERO_KEY_SKIPPED_COUNT)
	KeyGrowthCount   = Key(czero.ZERO_KEY_GROWTH_COUNT)
	KeyOverflowCount = Key(czero.ZERO_KEY_OVERFLOW_COUNT)

	// Of checkpoints.
	KeyCheckpointStagingBytes = Key(czero.ZERO_KEY_CHECKPOINT_STAGING_BYTES)
	KeyCheckpointKeep         = Key(czero.ZERO_KEY_CHECKPOINT_KEEP)
	KeyCheckpointDirect       = Key(czero.ZERO_KEY_CHECKPOINT_DIRECT)
	KeyCheckpointSync         = Key(czero.ZERO_KEY_CHECKPOINT_SYNC)
	KeyCheckpointSnapshot     = Key(czero.ZERO_KEY_CHECKPOINT_SNAPSHOT) // i64, a Snapshot
	KeyCheckpointFileBytes    = Key(czero.ZERO_KEY_CHECKPOINT_FILE_BYTES)
	KeyCheckpointProgressMs   = Key(czero.ZERO_KEY_CHECKPOINT_PROGRESS_MS)
	KeyCheckpointConvert      = Key(czero.ZERO_KEY_CHECKPOINT_CONVERT)
	KeyCheckpointMissing      = Key(czero.ZERO_KEY_CHECKPOINT_MISSING)
	KeyCheckpointExtra        = Key(czero.ZERO_KEY_CHECKPOINT_EXTRA)
	KeyCheckpointModelFiles   = Key(czero.ZERO_KEY_CHECKPOINT_MODEL_FILES)
)

// Keys of servers.
const (
	KeyServerRanks     = Key(czero.ZERO_KEY_SERVER_RANKS)     // i64: the first so many ranks are servers
	KeyServerOrder     = Key(czero.ZERO_KEY_SERVER_ORDER)     // i64, a ServerOrder
	KeyServerStaleness = Key(czero.ZERO_KEY_SERVER_STALENESS) // i64: pushes that a worker may be ahead of the slowest
	KeyServerRule      = Key(czero.ZERO_KEY_SERVER_RULE)      // i64, a ServerRule
	KeyServerRate      = Key(czero.ZERO_KEY_SERVER_RATE)      // f64: weight of a pushed value in a moving average
	KeyServerPeriod    = Key(czero.ZERO_KEY_SERVER_PERIOD)    // i64: pushes of a mean; 0: as many as workers
)

// String returns the key's name, for example "bucket_bytes".
func (k Key) String() string { return nameOf("ZERO_KEY_", int64(k)) }

// Rounding is the value of KeyRounding.
type Rounding int64

// How 16-bit parameters without master and narrow states are rounded.
const (
	RoundingNearest    = Rounding(czero.ZERO_ROUNDING_NEAREST)
	RoundingStochastic = Rounding(czero.ZERO_ROUNDING_STOCHASTIC)
)

// String returns its name, for example "nearest".
func (r Rounding) String() string { return nameOf("ZERO_ROUNDING_", int64(r)) }

// ServerOrder is the value of KeyServerOrder.
type ServerOrder int64

// The order in which servers apply what workers push.
const (
	ServerOrderRoundRobin = ServerOrder(czero.ZERO_SERVER_ORDER_ROUND_ROBIN) // in rounds, by rank
	ServerOrderArrival    = ServerOrder(czero.ZERO_SERVER_ORDER_ARRIVAL)     // as they arrive, within the bound of staleness
)

// String returns its name, for example "round_robin".
func (o ServerOrder) String() string { return nameOf("ZERO_SERVER_ORDER_", int64(o)) }

// ServerRule is the value of KeyServerRule.
type ServerRule int64

// What a push holds, and what servers do with it.
const (
	ServerRuleUpdate  = ServerRule(czero.ZERO_SERVER_RULE_UPDATE)  // a gradient: one step of the algorithm
	ServerRuleAverage = ServerRule(czero.ZERO_SERVER_RULE_AVERAGE) // parameters: a moving average
	ServerRuleMean    = ServerRule(czero.ZERO_SERVER_RULE_MEAN)    // parameters: the mean of every few pushes
)

// String returns its name, for example "update".
func (r ServerRule) String() string { return nameOf("ZERO_SERVER_RULE_", int64(r)) }

// LineCode is the value of KeyGradCode, KeyGatherCode and KeySyncCode.
type LineCode int64

// The forms of values that travel between ranks, with a scale per 256 elements.
const (
	LineCodeNone    = LineCode(czero.ZERO_CODE_NONE)
	LineCodeF8      = LineCode(czero.ZERO_CODE_F8)
	LineCodeI8      = LineCode(czero.ZERO_CODE_I8)
	LineCodeI4      = LineCode(czero.ZERO_CODE_I4)
	LineCodeTop     = LineCode(czero.ZERO_CODE_TOP)      // the largest values only (KeyCodeTop)
	LineCodeLowRank = LineCode(czero.ZERO_CODE_LOW_RANK) // factors of matrices (KeyCodeRank)
	LineCodeSign    = LineCode(czero.ZERO_CODE_SIGN)     // signs only
)

// String returns its name, for example "i8".
func (c LineCode) String() string { return nameOf("ZERO_CODE_", int64(c)) }

// Residual is the value of KeyResidual.
type Residual int64

// What becomes of the rounding errors of coded gradients.
const (
	ResidualNone = Residual(czero.ZERO_RESIDUAL_NONE)
	ResidualF32  = Residual(czero.ZERO_RESIDUAL_F32)
)

// String returns its name, for example "f32".
func (r Residual) String() string { return nameOf("ZERO_RESIDUAL_", int64(r)) }

// Neighbours is the value of KeyNeighbours.
type Neighbours int64

// The replicas that the end of a period averages.
const (
	NeighboursNone = Neighbours(czero.ZERO_NEIGHBOURS_NONE) // all
	NeighboursRing = Neighbours(czero.ZERO_NEIGHBOURS_RING) // each with the one before it and the one behind it
)

// String returns its name, for example "ring".
func (n Neighbours) String() string { return nameOf("ZERO_NEIGHBOURS_", int64(n)) }

// Snapshot is the value of KeyCheckpointSnapshot.
type Snapshot int64

// How an asynchronous save keeps what it saves.
const (
	SnapshotCopy = Snapshot(czero.ZERO_SNAPSHOT_COPY)
	SnapshotLazy = Snapshot(czero.ZERO_SNAPSHOT_LAZY)
)

// String returns its name, for example "lazy".
func (s Snapshot) String() string { return nameOf("ZERO_SNAPSHOT_", int64(s)) }

// Unfilled is the value of KeyUnfilled.
type Unfilled int64

// What becomes of parameters that no rank filled in a step.
const (
	UnfilledZero      = Unfilled(czero.ZERO_UNFILLED_ZERO)      // their gradient counts as zero
	UnfilledUntouched = Unfilled(czero.ZERO_UNFILLED_UNTOUCHED) // parameter and states stay as they are
)

// String returns its name, for example "untouched".
func (u Unfilled) String() string { return nameOf("ZERO_UNFILLED_", int64(u)) }

// Master is the value of KeyMaster.
type Master int64

// How 16-bit parameters are kept for updates.
const (
	MasterF32       = Master(czero.ZERO_MASTER_F32)       // a float32 copy
	MasterNone      = Master(czero.ZERO_MASTER_NONE)      // the parameter itself is updated
	MasterRemainder = Master(czero.ZERO_MASTER_REMAINDER) // the 16 bits that a bf16 parameter lacks of its float32 copy
)

// String returns its name, for example "remainder".
func (m Master) String() string { return nameOf("ZERO_MASTER_", int64(m)) }

// Divisor is the value of KeyDivisor.
type Divisor int64

// What the sum of gradients is divided by.
const (
	DivisorRanks   = Divisor(czero.ZERO_DIVISOR_RANKS)   // the number of ranks
	DivisorOne     = Divisor(czero.ZERO_DIVISOR_ONE)     // nothing
	DivisorWeights = Divisor(czero.ZERO_DIVISOR_WEIGHTS) // the sum of the weights that ranks give theirs (Optimizer.SetWeight)
)

// String returns its name, for example "weights".
func (d Divisor) String() string { return nameOf("ZERO_DIVISOR_", int64(d)) }

// Nonfinite is the value of KeyNonfinite.
type Nonfinite int64

// What a NaN or infinity in a gradient does.
const (
	NonfiniteSkip      = Nonfinite(czero.ZERO_NONFINITE_SKIP)      // all ranks skip the step
	NonfinitePropagate = Nonfinite(czero.ZERO_NONFINITE_PROPAGATE) // nobody looks
)

// String returns its name, for example "skip".
func (n Nonfinite) String() string { return nameOf("ZERO_NONFINITE_", int64(n)) }

// Tier is the value of KeyTier.
type Tier int64

// Where parameters, gradients and states lie.
const (
	TierHost   = Tier(czero.ZERO_TIER_HOST)   // in the host's memory
	TierDevice = Tier(czero.ZERO_TIER_DEVICE) // in a CUDA device's, as DeviceSlice
)

// String returns its name, for example "host".
func (t Tier) String() string { return nameOf("ZERO_TIER_", int64(t)) }
