# Written by bindings/gen/generate.py from bindings/zero.i. Do not edit.

# enum zero_status
const ZERO_OK = Int32(0)
const ZERO_E_INVALID_ARGUMENT = Int32(-100)
const ZERO_E_BAD_HANDLE = Int32(-101)
const ZERO_E_UNSUPPORTED = Int32(-102)
const ZERO_E_STATE = Int32(-103)
const ZERO_E_OUT_OF_MEMORY = Int32(-104)
const ZERO_E_BUSY = Int32(-105)
const ZERO_E_MODULE = Int32(-106)
const ZERO_E_RENDEZVOUS = Int32(-107)
const ZERO_E_SYSTEM = Int32(-108)
const ZERO_E_LAUNCHER = Int32(-109)
const ZERO_E_DEVICE = Int32(-110)
const ZERO_E_CHECKPOINT = Int32(-111)
const ZERO_E_NOT_FOUND = Int32(-112)
const ZERO_E_REPLICAS_DIFFER = Int32(-200)
const ZERO_E_POOL_LIMIT = Int32(-201)
const ZERO_E_CORRUPT = Int32(-202)
const ZERO_E_DEVICE_FAILED = Int32(-203)
const ZERO_E_TIMEOUT = Int32(-300)
const ZERO_E_PEER_LOST = Int32(-301)
const ZERO_E_PEER_LEFT = Int32(-302)
const ZERO_E_PEER_FAILED = Int32(-303)
const ZERO_E_MISMATCH = Int32(-304)
const ZERO_E_ABORTED = Int32(-305)
const ZERO_E_TRANSPORT = Int32(-306)
const ZERO_E_FORKED = Int32(-400)
const ZERO_E_INTERNAL = Int32(-401)

# enum zero_dtype
const ZERO_DTYPE_F32 = Int32(1)
const ZERO_DTYPE_F64 = Int32(2)
const ZERO_DTYPE_F16 = Int32(3)
const ZERO_DTYPE_BF16 = Int32(4)
const ZERO_DTYPE_I32 = Int32(20)
const ZERO_DTYPE_I64 = Int32(21)
const ZERO_DTYPE_U8 = Int32(40)
const ZERO_DTYPE_U16 = Int32(41)
const ZERO_DTYPE_F8_E4M3 = Int32(50)
const ZERO_DTYPE_F8_UE5M3 = Int32(51)

# enum zero_key
const ZERO_KEY_DEADLINE_MS = Int32(100)
const ZERO_KEY_RENDEZVOUS_MS = Int32(101)
const ZERO_KEY_THREADS = Int32(102)
const ZERO_KEY_STAGING_BYTES = Int32(103)
const ZERO_KEY_MPI_MODULE = Int32(104)
const ZERO_KEY_MPI_SHARED = Int32(105)
const ZERO_KEY_NCCL = Int32(106)
const ZERO_KEY_NCCL_MODULE = Int32(107)
const ZERO_KEY_RENDEZVOUS_PORT = Int32(108)
const ZERO_KEY_RENDEZVOUS_HOST = Int32(109)
const ZERO_KEY_SHARD_WEIGHTS = Int32(200)
const ZERO_KEY_STAGE = Int32(300)
const ZERO_KEY_ALGORITHM = Int32(301)
const ZERO_KEY_BUCKET_BYTES = Int32(302)
const ZERO_KEY_DIVISOR = Int32(303)
const ZERO_KEY_NONFINITE = Int32(304)
const ZERO_KEY_GRAD_NORM = Int32(305)
const ZERO_KEY_OVERLAP = Int32(306)
const ZERO_KEY_POOL_LIMIT = Int32(307)
const ZERO_KEY_CUSTOM_SLOTS = Int32(308)
const ZERO_KEY_CLIP_NORM = Int32(309)
const ZERO_KEY_CLIP_VALUE = Int32(310)
const ZERO_KEY_LOSS_SCALE = Int32(311)
const ZERO_KEY_LOSS_SCALE_DYNAMIC = Int32(312)
const ZERO_KEY_LOSS_SCALE_WINDOW = Int32(313)
const ZERO_KEY_LOSS_SCALE_HYSTERESIS = Int32(314)
const ZERO_KEY_LOSS_SCALE_BACKOFF = Int32(315)
const ZERO_KEY_LOSS_SCALE_GROWTH = Int32(316)
const ZERO_KEY_LOSS_SCALE_MIN = Int32(317)
const ZERO_KEY_LOSS_SCALE_MAX = Int32(318)
const ZERO_KEY_ROUNDING = Int32(319)
const ZERO_KEY_SEED = Int32(320)
const ZERO_KEY_UNFILLED = Int32(321)
const ZERO_KEY_ACCUMULATE_DTYPE = Int32(322)
const ZERO_KEY_AVERAGE = Int32(323)
const ZERO_KEY_GATHER_BELOW = Int32(324)
const ZERO_KEY_PREFETCH_BYTES = Int32(325)
const ZERO_KEY_VERIFY_EVERY = Int32(326)
const ZERO_KEY_MEMORY_LIMIT = Int32(327)
const ZERO_KEY_TRACE_EVENTS = Int32(328)
const ZERO_KEY_ONE_COPY = Int32(329)
const ZERO_KEY_DEVICE = Int32(330)
const ZERO_KEY_CUDA_MODULE = Int32(331)
const ZERO_KEY_TIER = Int32(332)
const ZERO_KEY_REPLICA_RANKS = Int32(333)
const ZERO_KEY_SYNC_PERIOD = Int32(334)
const ZERO_KEY_SYNC_AFTER = Int32(335)
const ZERO_KEY_SYNC_FRAGMENTS = Int32(336)
const ZERO_KEY_SYNC_DELAY = Int32(337)
const ZERO_KEY_CODE_RANK = Int32(338)
const ZERO_KEY_GRAD_CODE = Int32(339)
const ZERO_KEY_GATHER_CODE = Int32(340)
const ZERO_KEY_SYNC_CODE = Int32(341)
const ZERO_KEY_CODE_TOP = Int32(342)
const ZERO_KEY_CODE_AFTER = Int32(343)
const ZERO_KEY_RESIDUAL = Int32(344)
const ZERO_KEY_FLUSH_PERIOD = Int32(345)
const ZERO_KEY_PARAM_RANKS = Int32(346)
const ZERO_KEY_NEIGHBOURS = Int32(347)
const ZERO_KEY_GRAD_DELAY = Int32(348)
const ZERO_KEY_STRATEGY = Int32(349)
const ZERO_KEY_SET = Int32(350)
const ZERO_KEY_FROZEN = Int32(351)
const ZERO_KEY_GRAD_DTYPE = Int32(352)
const ZERO_KEY_MASTER = Int32(353)
const ZERO_KEY_FIRST_MOMENT_DTYPE = Int32(354)
const ZERO_KEY_SECOND_MOMENT_DTYPE = Int32(355)
const ZERO_KEY_REPLICATED = Int32(356)
const ZERO_KEY_TIED_TO = Int32(357)
const ZERO_KEY_PARAM_DTYPE = Int32(358)
const ZERO_KEY_ROWS = Int32(359)
const ZERO_KEY_LR = Int32(400)
const ZERO_KEY_MOMENTUM = Int32(401)
const ZERO_KEY_DAMPENING = Int32(402)
const ZERO_KEY_NESTEROV = Int32(403)
const ZERO_KEY_BETA1 = Int32(404)
const ZERO_KEY_BETA2 = Int32(405)
const ZERO_KEY_EPSILON = Int32(406)
const ZERO_KEY_WEIGHT_DECAY = Int32(407)
const ZERO_KEY_LR_DECAY = Int32(408)
const ZERO_KEY_INITIAL_ACCUMULATOR = Int32(409)
const ZERO_KEY_NEWTON_SCHULZ_STEPS = Int32(410)
const ZERO_KEY_AVERAGE_DECAY = Int32(411)
const ZERO_KEY_OUTER_LR = Int32(412)
const ZERO_KEY_OUTER_MOMENTUM = Int32(413)
const ZERO_KEY_SYNC_MIX = Int32(414)
const ZERO_KEY_CODE_MOMENTUM = Int32(415)
const ZERO_KEY_CODE_FREEZE = Int32(416)
const ZERO_KEY_STEP_COUNT = Int32(500)
const ZERO_KEY_SKIPPED_COUNT = Int32(501)
const ZERO_KEY_GROWTH_COUNT = Int32(502)
const ZERO_KEY_OVERFLOW_COUNT = Int32(503)
const ZERO_KEY_CHECKPOINT_STAGING_BYTES = Int32(600)
const ZERO_KEY_CHECKPOINT_KEEP = Int32(601)
const ZERO_KEY_CHECKPOINT_DIRECT = Int32(602)
const ZERO_KEY_CHECKPOINT_SYNC = Int32(603)
const ZERO_KEY_CHECKPOINT_SNAPSHOT = Int32(605)
const ZERO_KEY_CHECKPOINT_FILE_BYTES = Int32(606)
const ZERO_KEY_CHECKPOINT_PROGRESS_MS = Int32(607)
const ZERO_KEY_CHECKPOINT_CONVERT = Int32(608)
const ZERO_KEY_CHECKPOINT_MISSING = Int32(609)
const ZERO_KEY_CHECKPOINT_EXTRA = Int32(610)
const ZERO_KEY_CHECKPOINT_MODEL_FILES = Int32(611)
const ZERO_KEY_SERVER_RANKS = Int32(700)
const ZERO_KEY_SERVER_ORDER = Int32(701)
const ZERO_KEY_SERVER_STALENESS = Int32(702)
const ZERO_KEY_SERVER_RULE = Int32(703)
const ZERO_KEY_SERVER_RATE = Int32(704)
const ZERO_KEY_SERVER_PERIOD = Int32(705)

# enum zero_server_order
const ZERO_SERVER_ORDER_ROUND_ROBIN = Int32(0)
const ZERO_SERVER_ORDER_ARRIVAL = Int32(1)

# enum zero_server_rule
const ZERO_SERVER_RULE_UPDATE = Int32(0)
const ZERO_SERVER_RULE_AVERAGE = Int32(1)
const ZERO_SERVER_RULE_MEAN = Int32(2)

# enum zero_snapshot
const ZERO_SNAPSHOT_COPY = Int32(0)
const ZERO_SNAPSHOT_LAZY = Int32(1)

# enum zero_rounding
const ZERO_ROUNDING_NEAREST = Int32(0)
const ZERO_ROUNDING_STOCHASTIC = Int32(1)

# enum zero_unfilled
const ZERO_UNFILLED_ZERO = Int32(0)
const ZERO_UNFILLED_UNTOUCHED = Int32(1)

# enum zero_master
const ZERO_MASTER_F32 = Int32(0)
const ZERO_MASTER_NONE = Int32(1)
const ZERO_MASTER_REMAINDER = Int32(2)

# enum zero_divisor
const ZERO_DIVISOR_RANKS = Int32(0)
const ZERO_DIVISOR_ONE = Int32(1)
const ZERO_DIVISOR_WEIGHTS = Int32(2)

# enum zero_nonfinite
const ZERO_NONFINITE_SKIP = Int32(0)
const ZERO_NONFINITE_PROPAGATE = Int32(1)

# enum zero_code
const ZERO_CODE_NONE = Int32(0)
const ZERO_CODE_F8 = Int32(1)
const ZERO_CODE_I8 = Int32(2)
const ZERO_CODE_I4 = Int32(3)
const ZERO_CODE_TOP = Int32(4)
const ZERO_CODE_LOW_RANK = Int32(5)
const ZERO_CODE_SIGN = Int32(6)

# enum zero_residual
const ZERO_RESIDUAL_NONE = Int32(0)
const ZERO_RESIDUAL_F32 = Int32(1)

# enum zero_neighbours
const ZERO_NEIGHBOURS_NONE = Int32(0)
const ZERO_NEIGHBOURS_RING = Int32(1)

# enum zero_tier
const ZERO_TIER_HOST = Int32(0)
const ZERO_TIER_DEVICE = Int32(1)

# enum zero_reduce
const ZERO_REDUCE_SUM = Int32(1)
const ZERO_REDUCE_AVG = Int32(2)
const ZERO_REDUCE_MIN = Int32(3)
const ZERO_REDUCE_MAX = Int32(4)
const ZERO_REDUCE_PROD = Int32(5)

# enum zero_operation
const ZERO_OPERATION_BARRIER = Int32(1)
const ZERO_OPERATION_BROADCAST = Int32(2)
const ZERO_OPERATION_ALL_REDUCE = Int32(3)
const ZERO_OPERATION_REDUCE_SCATTER = Int32(4)
const ZERO_OPERATION_ALL_GATHER = Int32(5)
const ZERO_OPERATION_REDUCE = Int32(6)
const ZERO_OPERATION_GATHER = Int32(7)
const ZERO_OPERATION_SCATTER = Int32(8)
const ZERO_OPERATION_ALL_TO_ALL = Int32(9)
const ZERO_OPERATION_SEND = Int32(10)
const ZERO_OPERATION_RECV = Int32(11)

# enum zero_slot
const ZERO_SLOT_PARAM = Int32(1)
const ZERO_SLOT_GRAD = Int32(2)
const ZERO_SLOT_MASTER = Int32(3)
const ZERO_SLOT_AVERAGE = Int32(4)
const ZERO_SLOT_PARAM_SCALE = Int32(5)
const ZERO_SLOT_ANCHOR = Int32(6)
const ZERO_SLOT_UPDATE_COUNT = Int32(8)
const ZERO_SLOT_FIRST_MOMENT = Int32(10)
const ZERO_SLOT_SECOND_MOMENT = Int32(11)
const ZERO_SLOT_OUTER_MOMENT = Int32(12)
const ZERO_SLOT_FIRST_SCALE = Int32(14)
const ZERO_SLOT_SECOND_SCALE = Int32(15)
const ZERO_SLOT_CUSTOM = Int32(20)

# enum zero_source
const ZERO_SOURCE_LOCAL = Int32(0)
const ZERO_SOURCE_ROOT = Int32(1)
const ZERO_SOURCE_SHARDS = Int32(2)

# enum zero_initialiser
const ZERO_INITIALISER_CONSTANT = Int32(0)
const ZERO_INITIALISER_UNIFORM = Int32(1)
const ZERO_INITIALISER_NORMAL = Int32(2)

# enum zero_sync
const ZERO_SYNC_NONE = Int32(0)
const ZERO_SYNC_AVERAGE = Int32(1)
const ZERO_SYNC_BROADCAST = Int32(2)

# enum zero_finding
const ZERO_FINDING_NONE = Int32(0)
const ZERO_FINDING_SHARD = Int32(1)
const ZERO_FINDING_REPLICAS = Int32(2)

# enum zero_micro_step
const ZERO_MICRO_STEP_LAST = Int32(0)
const ZERO_MICRO_STEP_LOCAL = Int32(1)
const ZERO_MICRO_STEP_REDUCE = Int32(2)

# enum zero_scope
const ZERO_SCOPE_ONE = Int32(0)
const ZERO_SCOPE_EACH = Int32(1)

# enum zero_part
const ZERO_PART_ALL = Int32(0)
const ZERO_PART_PARAMS = Int32(1)

# enum zero_export
const ZERO_EXPORT_AS_KEPT = Int32(0)

# enum zero_text_form
const ZERO_TEXT_PLAIN = Int32(0)
const ZERO_TEXT_JSON = Int32(1)

# enum zero_memory
const ZERO_MEMORY_TOTAL = Int32(0)
const ZERO_MEMORY_PARAM = Int32(1)
const ZERO_MEMORY_GRAD = Int32(2)
const ZERO_MEMORY_STATE = Int32(3)
const ZERO_MEMORY_GRAD_POOL = Int32(4)
const ZERO_MEMORY_PARAM_POOL = Int32(5)
const ZERO_MEMORY_STAGING = Int32(6)
const ZERO_MEMORY_BUFFER = Int32(7)
const ZERO_MEMORY_ACCUMULATED = Int32(8)
const ZERO_MEMORY_MODULE_BUFFER = Int32(9)
const ZERO_MEMORY_WORKSPACE = Int32(10)

# enum zero_feature
const ZERO_FEATURE_LOCAL = Int32(1)
const ZERO_FEATURE_MPI = Int32(2)
const ZERO_FEATURE_CUDA = Int32(3)
const ZERO_FEATURE_NCCL = Int32(4)

const ZERO_MPI_WORLD = -1
const ZERO_VERSION_MAJOR = 0
const ZERO_VERSION_MINOR = 1
const ZERO_VERSION_PATCH = 0
const ZERO_ABI_MAJOR = 0
const ZERO_ABI_MINOR = 1

# The values of each enum by the names that callers use.
const DTYPE = Enumeration("dtype", [
    :f32 => ZERO_DTYPE_F32,
    :f64 => ZERO_DTYPE_F64,
    :f16 => ZERO_DTYPE_F16,
    :bf16 => ZERO_DTYPE_BF16,
    :i32 => ZERO_DTYPE_I32,
    :i64 => ZERO_DTYPE_I64,
    :u8 => ZERO_DTYPE_U8,
    :u16 => ZERO_DTYPE_U16,
    :f8_e4m3 => ZERO_DTYPE_F8_E4M3,
    :f8_ue5m3 => ZERO_DTYPE_F8_UE5M3,
])
const KEY = Enumeration("key", [
    :deadline_ms => ZERO_KEY_DEADLINE_MS,
    :rendezvous_ms => ZERO_KEY_RENDEZVOUS_MS,
    :threads => ZERO_KEY_THREADS,
    :staging_bytes => ZERO_KEY_STAGING_BYTES,
    :mpi_module => ZERO_KEY_MPI_MODULE,
    :mpi_shared => ZERO_KEY_MPI_SHARED,
    :nccl => ZERO_KEY_NCCL,
    :nccl_module => ZERO_KEY_NCCL_MODULE,
    :rendezvous_port => ZERO_KEY_RENDEZVOUS_PORT,
    :rendezvous_host => ZERO_KEY_RENDEZVOUS_HOST,
    :shard_weights => ZERO_KEY_SHARD_WEIGHTS,
    :stage => ZERO_KEY_STAGE,
    :algorithm => ZERO_KEY_ALGORITHM,
    :bucket_bytes => ZERO_KEY_BUCKET_BYTES,
    :divisor => ZERO_KEY_DIVISOR,
    :nonfinite => ZERO_KEY_NONFINITE,
    :grad_norm => ZERO_KEY_GRAD_NORM,
    :overlap => ZERO_KEY_OVERLAP,
    :pool_limit => ZERO_KEY_POOL_LIMIT,
    :custom_slots => ZERO_KEY_CUSTOM_SLOTS,
    :clip_norm => ZERO_KEY_CLIP_NORM,
    :clip_value => ZERO_KEY_CLIP_VALUE,
    :loss_scale => ZERO_KEY_LOSS_SCALE,
    :loss_scale_dynamic => ZERO_KEY_LOSS_SCALE_DYNAMIC,
    :loss_scale_window => ZERO_KEY_LOSS_SCALE_WINDOW,
    :loss_scale_hysteresis => ZERO_KEY_LOSS_SCALE_HYSTERESIS,
    :loss_scale_backoff => ZERO_KEY_LOSS_SCALE_BACKOFF,
    :loss_scale_growth => ZERO_KEY_LOSS_SCALE_GROWTH,
    :loss_scale_min => ZERO_KEY_LOSS_SCALE_MIN,
    :loss_scale_max => ZERO_KEY_LOSS_SCALE_MAX,
    :rounding => ZERO_KEY_ROUNDING,
    :seed => ZERO_KEY_SEED,
    :unfilled => ZERO_KEY_UNFILLED,
    :accumulate_dtype => ZERO_KEY_ACCUMULATE_DTYPE,
    :average => ZERO_KEY_AVERAGE,
    :gather_below => ZERO_KEY_GATHER_BELOW,
    :prefetch_bytes => ZERO_KEY_PREFETCH_BYTES,
    :verify_every => ZERO_KEY_VERIFY_EVERY,
    :memory_limit => ZERO_KEY_MEMORY_LIMIT,
    :trace_events => ZERO_KEY_TRACE_EVENTS,
    :one_copy => ZERO_KEY_ONE_COPY,
    :device => ZERO_KEY_DEVICE,
    :cuda_module => ZERO_KEY_CUDA_MODULE,
    :tier => ZERO_KEY_TIER,
    :replica_ranks => ZERO_KEY_REPLICA_RANKS,
    :sync_period => ZERO_KEY_SYNC_PERIOD,
    :sync_after => ZERO_KEY_SYNC_AFTER,
    :sync_fragments => ZERO_KEY_SYNC_FRAGMENTS,
    :sync_delay => ZERO_KEY_SYNC_DELAY,
    :code_rank => ZERO_KEY_CODE_RANK,
    :grad_code => ZERO_KEY_GRAD_CODE,
    :gather_code => ZERO_KEY_GATHER_CODE,
    :sync_code => ZERO_KEY_SYNC_CODE,
    :code_top => ZERO_KEY_CODE_TOP,
    :code_after => ZERO_KEY_CODE_AFTER,
    :residual => ZERO_KEY_RESIDUAL,
    :flush_period => ZERO_KEY_FLUSH_PERIOD,
    :param_ranks => ZERO_KEY_PARAM_RANKS,
    :neighbours => ZERO_KEY_NEIGHBOURS,
    :grad_delay => ZERO_KEY_GRAD_DELAY,
    :strategy => ZERO_KEY_STRATEGY,
    :set => ZERO_KEY_SET,
    :frozen => ZERO_KEY_FROZEN,
    :grad_dtype => ZERO_KEY_GRAD_DTYPE,
    :master => ZERO_KEY_MASTER,
    :first_moment_dtype => ZERO_KEY_FIRST_MOMENT_DTYPE,
    :second_moment_dtype => ZERO_KEY_SECOND_MOMENT_DTYPE,
    :replicated => ZERO_KEY_REPLICATED,
    :tied_to => ZERO_KEY_TIED_TO,
    :param_dtype => ZERO_KEY_PARAM_DTYPE,
    :rows => ZERO_KEY_ROWS,
    :lr => ZERO_KEY_LR,
    :momentum => ZERO_KEY_MOMENTUM,
    :dampening => ZERO_KEY_DAMPENING,
    :nesterov => ZERO_KEY_NESTEROV,
    :beta1 => ZERO_KEY_BETA1,
    :beta2 => ZERO_KEY_BETA2,
    :epsilon => ZERO_KEY_EPSILON,
    :weight_decay => ZERO_KEY_WEIGHT_DECAY,
    :lr_decay => ZERO_KEY_LR_DECAY,
    :initial_accumulator => ZERO_KEY_INITIAL_ACCUMULATOR,
    :newton_schulz_steps => ZERO_KEY_NEWTON_SCHULZ_STEPS,
    :average_decay => ZERO_KEY_AVERAGE_DECAY,
    :outer_lr => ZERO_KEY_OUTER_LR,
    :outer_momentum => ZERO_KEY_OUTER_MOMENTUM,
    :sync_mix => ZERO_KEY_SYNC_MIX,
    :code_momentum => ZERO_KEY_CODE_MOMENTUM,
    :code_freeze => ZERO_KEY_CODE_FREEZE,
    :step_count => ZERO_KEY_STEP_COUNT,
    :skipped_count => ZERO_KEY_SKIPPED_COUNT,
    :growth_count => ZERO_KEY_GROWTH_COUNT,
    :overflow_count => ZERO_KEY_OVERFLOW_COUNT,
    :checkpoint_staging_bytes => ZERO_KEY_CHECKPOINT_STAGING_BYTES,
    :checkpoint_keep => ZERO_KEY_CHECKPOINT_KEEP,
    :checkpoint_direct => ZERO_KEY_CHECKPOINT_DIRECT,
    :checkpoint_sync => ZERO_KEY_CHECKPOINT_SYNC,
    :checkpoint_snapshot => ZERO_KEY_CHECKPOINT_SNAPSHOT,
    :checkpoint_file_bytes => ZERO_KEY_CHECKPOINT_FILE_BYTES,
    :checkpoint_progress_ms => ZERO_KEY_CHECKPOINT_PROGRESS_MS,
    :checkpoint_convert => ZERO_KEY_CHECKPOINT_CONVERT,
    :checkpoint_missing => ZERO_KEY_CHECKPOINT_MISSING,
    :checkpoint_extra => ZERO_KEY_CHECKPOINT_EXTRA,
    :checkpoint_model_files => ZERO_KEY_CHECKPOINT_MODEL_FILES,
    :server_ranks => ZERO_KEY_SERVER_RANKS,
    :server_order => ZERO_KEY_SERVER_ORDER,
    :server_staleness => ZERO_KEY_SERVER_STALENESS,
    :server_rule => ZERO_KEY_SERVER_RULE,
    :server_rate => ZERO_KEY_SERVER_RATE,
    :server_period => ZERO_KEY_SERVER_PERIOD,
])
const SERVER_ORDER = Enumeration("server order", [
    :round_robin => ZERO_SERVER_ORDER_ROUND_ROBIN,
    :arrival => ZERO_SERVER_ORDER_ARRIVAL,
])
const SERVER_RULE = Enumeration("server rule", [
    :update => ZERO_SERVER_RULE_UPDATE,
    :average => ZERO_SERVER_RULE_AVERAGE,
    :mean => ZERO_SERVER_RULE_MEAN,
])
const SNAPSHOT = Enumeration("snapshot", [
    :copy => ZERO_SNAPSHOT_COPY,
    :lazy => ZERO_SNAPSHOT_LAZY,
])
const ROUNDING = Enumeration("rounding", [
    :nearest => ZERO_ROUNDING_NEAREST,
    :stochastic => ZERO_ROUNDING_STOCHASTIC,
])
const UNFILLED = Enumeration("unfilled", [
    :zero => ZERO_UNFILLED_ZERO,
    :untouched => ZERO_UNFILLED_UNTOUCHED,
])
const MASTER = Enumeration("master", [
    :f32 => ZERO_MASTER_F32,
    :none => ZERO_MASTER_NONE,
    :remainder => ZERO_MASTER_REMAINDER,
])
const DIVISOR = Enumeration("divisor", [
    :ranks => ZERO_DIVISOR_RANKS,
    :one => ZERO_DIVISOR_ONE,
    :weights => ZERO_DIVISOR_WEIGHTS,
])
const NONFINITE = Enumeration("nonfinite", [
    :skip => ZERO_NONFINITE_SKIP,
    :propagate => ZERO_NONFINITE_PROPAGATE,
])
const CODE = Enumeration("code", [
    :none => ZERO_CODE_NONE,
    :f8 => ZERO_CODE_F8,
    :i8 => ZERO_CODE_I8,
    :i4 => ZERO_CODE_I4,
    :top => ZERO_CODE_TOP,
    :low_rank => ZERO_CODE_LOW_RANK,
    :sign => ZERO_CODE_SIGN,
])
const RESIDUAL = Enumeration("residual", [
    :none => ZERO_RESIDUAL_NONE,
    :f32 => ZERO_RESIDUAL_F32,
])
const NEIGHBOURS = Enumeration("neighbours", [
    :none => ZERO_NEIGHBOURS_NONE,
    :ring => ZERO_NEIGHBOURS_RING,
])
const TIER = Enumeration("tier", [
    :host => ZERO_TIER_HOST,
    :device => ZERO_TIER_DEVICE,
])
const REDUCE = Enumeration("reduce", [
    :sum => ZERO_REDUCE_SUM,
    :avg => ZERO_REDUCE_AVG,
    :min => ZERO_REDUCE_MIN,
    :max => ZERO_REDUCE_MAX,
    :prod => ZERO_REDUCE_PROD,
])
const OPERATION = Enumeration("operation", [
    :barrier => ZERO_OPERATION_BARRIER,
    :broadcast => ZERO_OPERATION_BROADCAST,
    :all_reduce => ZERO_OPERATION_ALL_REDUCE,
    :reduce_scatter => ZERO_OPERATION_REDUCE_SCATTER,
    :all_gather => ZERO_OPERATION_ALL_GATHER,
    :reduce => ZERO_OPERATION_REDUCE,
    :gather => ZERO_OPERATION_GATHER,
    :scatter => ZERO_OPERATION_SCATTER,
    :all_to_all => ZERO_OPERATION_ALL_TO_ALL,
    :send => ZERO_OPERATION_SEND,
    :recv => ZERO_OPERATION_RECV,
])
const SLOT = Enumeration("slot", [
    :param => ZERO_SLOT_PARAM,
    :grad => ZERO_SLOT_GRAD,
    :master => ZERO_SLOT_MASTER,
    :average => ZERO_SLOT_AVERAGE,
    :param_scale => ZERO_SLOT_PARAM_SCALE,
    :anchor => ZERO_SLOT_ANCHOR,
    :update_count => ZERO_SLOT_UPDATE_COUNT,
    :first_moment => ZERO_SLOT_FIRST_MOMENT,
    :second_moment => ZERO_SLOT_SECOND_MOMENT,
    :outer_moment => ZERO_SLOT_OUTER_MOMENT,
    :first_scale => ZERO_SLOT_FIRST_SCALE,
    :second_scale => ZERO_SLOT_SECOND_SCALE,
    :custom => ZERO_SLOT_CUSTOM,
])
const SOURCE = Enumeration("source", [
    :local => ZERO_SOURCE_LOCAL,
    :root => ZERO_SOURCE_ROOT,
    :shards => ZERO_SOURCE_SHARDS,
])
const INITIALISER = Enumeration("initialiser", [
    :constant => ZERO_INITIALISER_CONSTANT,
    :uniform => ZERO_INITIALISER_UNIFORM,
    :normal => ZERO_INITIALISER_NORMAL,
])
const SYNC = Enumeration("sync", [
    :none => ZERO_SYNC_NONE,
    :average => ZERO_SYNC_AVERAGE,
    :broadcast => ZERO_SYNC_BROADCAST,
])
const FINDING = Enumeration("finding", [
    :none => ZERO_FINDING_NONE,
    :shard => ZERO_FINDING_SHARD,
    :replicas => ZERO_FINDING_REPLICAS,
])
const MICRO_STEP = Enumeration("micro step", [
    :last => ZERO_MICRO_STEP_LAST,
    :local => ZERO_MICRO_STEP_LOCAL,
    :reduce => ZERO_MICRO_STEP_REDUCE,
])
const SCOPE = Enumeration("scope", [
    :one => ZERO_SCOPE_ONE,
    :each => ZERO_SCOPE_EACH,
])
const PART = Enumeration("part", [
    :all => ZERO_PART_ALL,
    :params => ZERO_PART_PARAMS,
])
const EXPORT = Enumeration("export", [
    :as_kept => ZERO_EXPORT_AS_KEPT,
])
const TEXT_FORM = Enumeration("text form", [
    :plain => ZERO_TEXT_PLAIN,
    :json => ZERO_TEXT_JSON,
])
const MEMORY = Enumeration("memory", [
    :total => ZERO_MEMORY_TOTAL,
    :param => ZERO_MEMORY_PARAM,
    :grad => ZERO_MEMORY_GRAD,
    :state => ZERO_MEMORY_STATE,
    :grad_pool => ZERO_MEMORY_GRAD_POOL,
    :param_pool => ZERO_MEMORY_PARAM_POOL,
    :staging => ZERO_MEMORY_STAGING,
    :buffer => ZERO_MEMORY_BUFFER,
    :accumulated => ZERO_MEMORY_ACCUMULATED,
    :module_buffer => ZERO_MEMORY_MODULE_BUFFER,
    :workspace => ZERO_MEMORY_WORKSPACE,
])
const FEATURE = Enumeration("feature", [
    :local => ZERO_FEATURE_LOCAL,
    :mpi => ZERO_FEATURE_MPI,
    :cuda => ZERO_FEATURE_CUDA,
    :nccl => ZERO_FEATURE_NCCL,
])

struct KeyBounds
    struct_size::UInt64
    type::Int64
    min_i64::Int64
    max_i64::Int64
    default_i64::Int64
    min_f64::Float64
    max_f64::Float64
    default_f64::Float64
end
KeyBounds() = KeyBounds(sizeof(KeyBounds), 0, 0, 0, 0, 0, 0, 0)

struct StepResult
    struct_size::UInt64
    step::Int64
    skipped::Int64
    skipped_total::Int64
    unfilled_count::Int64
    grad_norm::Float64
    loss_scale::Float64
    stop_reason::Int64
    synced::Int64
    spread::Float64
end
StepResult() = StepResult(sizeof(StepResult), 0, 0, 0, 0, 0, 0, 0, 0, 0)

struct VerifyResult
    struct_size::UInt64
    found::Int64
    chunk_count::Int64
    rank::Int64
    other_rank::Int64
    param::Int64
    slot::Int64
    offset::Int64
    count::Int64
    replica_nbytes::Int64
    shard_nbytes::Int64
end
VerifyResult() = VerifyResult(sizeof(VerifyResult), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

struct CheckpointResult
    struct_size::UInt64
    step::Int64
    nbytes::Int64
    file_count::Int64
    write_ns::Int64
    sync_ns::Int64
    commit_ns::Int64
    direct::Int64
    missing::Int64
    extra::Int64
    converted::Int64
    fallback::Int64
    snapshot_nbytes::Int64
    stall_ns::Int64
end
CheckpointResult() = CheckpointResult(sizeof(CheckpointResult), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

struct ServerResult
    struct_size::UInt64
    push_count::Int64
    pull_count::Int64
    skipped_count::Int64
    waited_count::Int64
    left_count::Int64
    lost_count::Int64
    received_nbytes::Int64
    sent_nbytes::Int64
    greatest_age::Int64
    age_0_count::Int64
    age_1_count::Int64
    age_2_count::Int64
    age_4_count::Int64
    age_8_count::Int64
    age_16_count::Int64
end
ServerResult() = ServerResult(sizeof(ServerResult), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

struct MemoryStats
    struct_size::UInt64
    now_nbytes::Int64
    peak_nbytes::Int64
    formula_nbytes::Int64
    constant_nbytes::Int64
end
MemoryStats() = MemoryStats(sizeof(MemoryStats), 0, 0, 0, 0)

struct TrafficStats
    struct_size::UInt64
    call_count::Int64
    sent_elements::Int64
    sent_nbytes::Int64
end
TrafficStats() = TrafficStats(sizeof(TrafficStats), 0, 0, 0)

struct StepStats
    struct_size::UInt64
    step_count::Int64
    reduce_ns::Int64
    apply_ns::Int64
    gather_ns::Int64
    stalled_nbytes::Int64
    pool_grow_count::Int64
    overlap_active::Int64
end
StepStats() = StepStats(sizeof(StepStats), 0, 0, 0, 0, 0, 0, 0)

# Where the functions of the loaded library lie.
mutable struct Functions
    zero_last_error_copy::Ptr{Cvoid}
    zero_status_name::Ptr{Cvoid}
    zero_dtype_nbytes::Ptr{Cvoid}
    zero_config_create::Ptr{Cvoid}
    zero_config_set_i64::Ptr{Cvoid}
    zero_config_set_f64::Ptr{Cvoid}
    zero_config_set_str::Ptr{Cvoid}
    zero_key_bounds_init::Ptr{Cvoid}
    zero_config_bounds::Ptr{Cvoid}
    zero_config_set_allocator::Ptr{Cvoid}
    zero_config_release::Ptr{Cvoid}
    zero_request_test::Ptr{Cvoid}
    zero_request_wait::Ptr{Cvoid}
    zero_request_group::Ptr{Cvoid}
    zero_request_buffer::Ptr{Cvoid}
    zero_request_release::Ptr{Cvoid}
    zero_group_create_local::Ptr{Cvoid}
    zero_group_create_local_async::Ptr{Cvoid}
    zero_group_create_mpi::Ptr{Cvoid}
    zero_group_create_mpi_async::Ptr{Cvoid}
    zero_group_create_nccl::Ptr{Cvoid}
    zero_group_create_nccl_async::Ptr{Cvoid}
    zero_group_unique_id::Ptr{Cvoid}
    zero_group_create_env::Ptr{Cvoid}
    zero_group_create_env_async::Ptr{Cvoid}
    zero_group_launcher::Ptr{Cvoid}
    zero_group_split::Ptr{Cvoid}
    zero_group_split_async::Ptr{Cvoid}
    zero_group_rank::Ptr{Cvoid}
    zero_group_size::Ptr{Cvoid}
    zero_group_local_rank::Ptr{Cvoid}
    zero_group_local_size::Ptr{Cvoid}
    zero_group_host_count::Ptr{Cvoid}
    zero_group_share::Ptr{Cvoid}
    zero_group_status::Ptr{Cvoid}
    zero_group_abort::Ptr{Cvoid}
    zero_group_set_deadline::Ptr{Cvoid}
    zero_group_quiet::Ptr{Cvoid}
    zero_group_all_reduce::Ptr{Cvoid}
    zero_group_all_reduce_async::Ptr{Cvoid}
    zero_group_reduce_scatter::Ptr{Cvoid}
    zero_group_reduce_scatter_async::Ptr{Cvoid}
    zero_group_all_gather::Ptr{Cvoid}
    zero_group_all_gather_async::Ptr{Cvoid}
    zero_group_broadcast::Ptr{Cvoid}
    zero_group_broadcast_async::Ptr{Cvoid}
    zero_group_reduce::Ptr{Cvoid}
    zero_group_reduce_async::Ptr{Cvoid}
    zero_group_gather::Ptr{Cvoid}
    zero_group_gather_async::Ptr{Cvoid}
    zero_group_scatter::Ptr{Cvoid}
    zero_group_scatter_async::Ptr{Cvoid}
    zero_group_all_to_all::Ptr{Cvoid}
    zero_group_all_to_all_async::Ptr{Cvoid}
    zero_group_send::Ptr{Cvoid}
    zero_group_send_async::Ptr{Cvoid}
    zero_group_recv::Ptr{Cvoid}
    zero_group_recv_async::Ptr{Cvoid}
    zero_group_barrier::Ptr{Cvoid}
    zero_group_barrier_async::Ptr{Cvoid}
    zero_group_balance::Ptr{Cvoid}
    zero_group_balance_async::Ptr{Cvoid}
    zero_group_release::Ptr{Cvoid}
    zero_buffer_create::Ptr{Cvoid}
    zero_buffer_create_async::Ptr{Cvoid}
    zero_buffer_shard::Ptr{Cvoid}
    zero_buffer_whole_acquire::Ptr{Cvoid}
    zero_buffer_whole_acquire_async::Ptr{Cvoid}
    zero_buffer_whole_release::Ptr{Cvoid}
    zero_buffer_reduce_scatter::Ptr{Cvoid}
    zero_buffer_reduce_scatter_async::Ptr{Cvoid}
    zero_buffer_read::Ptr{Cvoid}
    zero_buffer_read_async::Ptr{Cvoid}
    zero_buffer_write::Ptr{Cvoid}
    zero_buffer_write_async::Ptr{Cvoid}
    zero_buffer_release::Ptr{Cvoid}
    zero_step_result_init::Ptr{Cvoid}
    zero_verify_result_init::Ptr{Cvoid}
    zero_optimizer_create::Ptr{Cvoid}
    zero_optimizer_add_set::Ptr{Cvoid}
    zero_optimizer_set_model_group::Ptr{Cvoid}
    zero_optimizer_add_param::Ptr{Cvoid}
    zero_optimizer_set_order::Ptr{Cvoid}
    zero_optimizer_add_module_buffer::Ptr{Cvoid}
    zero_optimizer_set_gather_order::Ptr{Cvoid}
    zero_optimizer_seal::Ptr{Cvoid}
    zero_optimizer_seal_async::Ptr{Cvoid}
    zero_optimizer_begin::Ptr{Cvoid}
    zero_optimizer_begin_async::Ptr{Cvoid}
    zero_optimizer_init_param::Ptr{Cvoid}
    zero_optimizer_module_buffer::Ptr{Cvoid}
    zero_optimizer_sync_module_buffers::Ptr{Cvoid}
    zero_optimizer_sync_module_buffers_async::Ptr{Cvoid}
    zero_optimizer_param_acquire::Ptr{Cvoid}
    zero_optimizer_param_acquire_async::Ptr{Cvoid}
    zero_optimizer_param_release::Ptr{Cvoid}
    zero_optimizer_grad_acquire::Ptr{Cvoid}
    zero_optimizer_grad_ready::Ptr{Cvoid}
    zero_optimizer_grad_ready_rows::Ptr{Cvoid}
    zero_optimizer_grads_ready::Ptr{Cvoid}
    zero_optimizer_set_weight::Ptr{Cvoid}
    zero_optimizer_micro_step::Ptr{Cvoid}
    zero_optimizer_micro_step_async::Ptr{Cvoid}
    zero_optimizer_step::Ptr{Cvoid}
    zero_optimizer_step_async::Ptr{Cvoid}
    zero_optimizer_reduce::Ptr{Cvoid}
    zero_optimizer_reduce_async::Ptr{Cvoid}
    zero_optimizer_apply::Ptr{Cvoid}
    zero_optimizer_apply_async::Ptr{Cvoid}
    zero_optimizer_gather::Ptr{Cvoid}
    zero_optimizer_gather_async::Ptr{Cvoid}
    zero_optimizer_view_count::Ptr{Cvoid}
    zero_optimizer_view::Ptr{Cvoid}
    zero_optimizer_verify::Ptr{Cvoid}
    zero_optimizer_verify_async::Ptr{Cvoid}
    zero_optimizer_release::Ptr{Cvoid}
    zero_optimizer_sync::Ptr{Cvoid}
    zero_optimizer_sync_async::Ptr{Cvoid}
    zero_optimizer_request_stop::Ptr{Cvoid}
    zero_optimizer_set_f64::Ptr{Cvoid}
    zero_optimizer_get_f64::Ptr{Cvoid}
    zero_optimizer_set_i64::Ptr{Cvoid}
    zero_optimizer_get_i64::Ptr{Cvoid}
    zero_optimizer_slot_count::Ptr{Cvoid}
    zero_optimizer_slot::Ptr{Cvoid}
    zero_optimizer_read::Ptr{Cvoid}
    zero_optimizer_read_async::Ptr{Cvoid}
    zero_optimizer_write::Ptr{Cvoid}
    zero_optimizer_write_async::Ptr{Cvoid}
    zero_optimizer_result::Ptr{Cvoid}
    zero_optimizer_refresh::Ptr{Cvoid}
    zero_optimizer_loss_scale_address::Ptr{Cvoid}
    zero_checkpoint_result_init::Ptr{Cvoid}
    zero_optimizer_save::Ptr{Cvoid}
    zero_optimizer_save_async::Ptr{Cvoid}
    zero_optimizer_resume::Ptr{Cvoid}
    zero_optimizer_resume_async::Ptr{Cvoid}
    zero_checkpoint_create::Ptr{Cvoid}
    zero_checkpoint_add_optimizer::Ptr{Cvoid}
    zero_checkpoint_add_buffer::Ptr{Cvoid}
    zero_checkpoint_add_tensor::Ptr{Cvoid}
    zero_checkpoint_set_text::Ptr{Cvoid}
    zero_checkpoint_get_text::Ptr{Cvoid}
    zero_checkpoint_rename::Ptr{Cvoid}
    zero_checkpoint_save::Ptr{Cvoid}
    zero_checkpoint_save_async::Ptr{Cvoid}
    zero_checkpoint_load::Ptr{Cvoid}
    zero_checkpoint_load_async::Ptr{Cvoid}
    zero_checkpoint_export::Ptr{Cvoid}
    zero_checkpoint_export_async::Ptr{Cvoid}
    zero_checkpoint_skipped::Ptr{Cvoid}
    zero_checkpoint_release::Ptr{Cvoid}
    zero_save_open::Ptr{Cvoid}
    zero_save_list::Ptr{Cvoid}
    zero_save_describe::Ptr{Cvoid}
    zero_save_verify::Ptr{Cvoid}
    zero_save_compare::Ptr{Cvoid}
    zero_save_differences::Ptr{Cvoid}
    zero_save_export::Ptr{Cvoid}
    zero_save_prunable::Ptr{Cvoid}
    zero_save_remove::Ptr{Cvoid}
    zero_save_progress::Ptr{Cvoid}
    zero_save_release::Ptr{Cvoid}
    zero_server_result_init::Ptr{Cvoid}
    zero_server_create::Ptr{Cvoid}
    zero_server_seal::Ptr{Cvoid}
    zero_server_seal_async::Ptr{Cvoid}
    zero_server_shard::Ptr{Cvoid}
    zero_server_replay::Ptr{Cvoid}
    zero_server_record::Ptr{Cvoid}
    zero_server_run::Ptr{Cvoid}
    zero_server_run_async::Ptr{Cvoid}
    zero_server_push::Ptr{Cvoid}
    zero_server_push_async::Ptr{Cvoid}
    zero_server_pull::Ptr{Cvoid}
    zero_server_pull_async::Ptr{Cvoid}
    zero_server_leave::Ptr{Cvoid}
    zero_server_leave_async::Ptr{Cvoid}
    zero_server_release::Ptr{Cvoid}
    zero_memory_stats_init::Ptr{Cvoid}
    zero_stats_optimizer_memory::Ptr{Cvoid}
    zero_stats_buffer_memory::Ptr{Cvoid}
    zero_traffic_stats_init::Ptr{Cvoid}
    zero_stats_group_traffic::Ptr{Cvoid}
    zero_stats_optimizer_traffic::Ptr{Cvoid}
    zero_step_stats_init::Ptr{Cvoid}
    zero_stats_optimizer_step::Ptr{Cvoid}
    zero_describe_library::Ptr{Cvoid}
    zero_describe_group::Ptr{Cvoid}
    zero_describe_optimizer::Ptr{Cvoid}
    zero_stats_optimizer_trace::Ptr{Cvoid}
    zero_abi_version::Ptr{Cvoid}
    zero_version::Ptr{Cvoid}
    zero_has_feature::Ptr{Cvoid}
    Functions() = new(ntuple(_ -> C_NULL, 194)...)
end
const libzero = Functions()

function zero_status_name(status)
    return unsafe_string(ccall(entry(libzero.zero_status_name), Cstring, (Int32,), status))
end

function zero_dtype_nbytes(dtype)
    out_nbytes = Ref(Int64(0))
    check(ccall(entry(libzero.zero_dtype_nbytes), Int32, (Int32, Ptr{Int64}), dtype, out_nbytes))
    return out_nbytes[]
end

function zero_config_create()
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_config_create), Int32, (Ptr{Handle},), out))
    return out[]
end

function zero_config_set_i64(config, key, value)
    check(ccall(entry(libzero.zero_config_set_i64), Int32, (Handle, Int32, Int64), config, key, value))
    return nothing
end

function zero_config_set_f64(config, key, value)
    check(ccall(entry(libzero.zero_config_set_f64), Int32, (Handle, Int32, Float64), config, key, value))
    return nothing
end

function zero_config_set_str(config, key, value)
    check(ccall(entry(libzero.zero_config_set_str), Int32, (Handle, Int32, Cstring), config, key, value))
    return nothing
end

function zero_key_bounds_init(struct_size)
    out = Ref(KeyBounds())
    check(ccall(entry(libzero.zero_key_bounds_init), Int32, (Ptr{KeyBounds}, UInt64), out, struct_size))
    return out[]
end

function zero_config_bounds(key)
    out = Ref(KeyBounds())
    check(ccall(entry(libzero.zero_config_bounds), Int32, (Int32, Ptr{KeyBounds}), key, out))
    return out[]
end

function zero_config_set_allocator(config, alloc, free_fn, shared, user)
    check(ccall(entry(libzero.zero_config_set_allocator), Int32, (Handle, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}),
          config, alloc, free_fn, shared, user))
    return nothing
end

function zero_config_release(config)
    return ccall(entry(libzero.zero_config_release), Cvoid, (Handle,), config)
end

function zero_request_wait(request)
    check(ccall(entry(libzero.zero_request_wait), Int32, (Handle,), request))
    return nothing
end

function zero_request_group(request)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_request_group), Int32, (Handle, Ptr{Handle}), request, out))
    return out[]
end

function zero_request_buffer(request)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_request_buffer), Int32, (Handle, Ptr{Handle}), request, out))
    return out[]
end

function zero_request_release(request)
    return ccall(entry(libzero.zero_request_release), Cvoid, (Handle,), request)
end

function zero_group_create_local(name, rank, size, config)
    return finish(zero_request_group) do request
        ccall(entry(libzero.zero_group_create_local_async), Int32, (Cstring, Int64, Int64, Handle, Ptr{Handle}),
              name, rank, size, config, request)
    end
end

function zero_group_create_mpi(comm, config)
    return finish(zero_request_group) do request
        ccall(entry(libzero.zero_group_create_mpi_async), Int32, (Int64, Handle, Ptr{Handle}), comm, config, request)
    end
end

function zero_group_create_nccl(id, rank, size, config)
    return finish(zero_request_group) do request
        ccall(entry(libzero.zero_group_create_nccl_async), Int32, (Cstring, Int64, Int64, Handle, Ptr{Handle}),
              id, rank, size, config, request)
    end
end

function zero_group_unique_id(config)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_group_unique_id), Int32, (Handle, Ptr{UInt8}, Int64, Ptr{Int64}), config, out, out_nbytes, out_needed)
    end
end

function zero_group_create_env(config)
    return finish(zero_request_group) do request
        ccall(entry(libzero.zero_group_create_env_async), Int32, (Handle, Ptr{Handle}), config, request)
    end
end

function zero_group_launcher()
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_group_launcher), Int32, (Ptr{UInt8}, Int64, Ptr{Int64}), out, out_nbytes, out_needed)
    end
end

function zero_group_split(group, color, key)
    return finish(zero_request_group) do request
        ccall(entry(libzero.zero_group_split_async), Int32, (Handle, Int64, Int64, Ptr{Handle}), group, color, key, request)
    end
end

function zero_group_rank(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_rank), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_size(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_size), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_local_rank(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_local_rank), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_local_size(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_local_size), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_host_count(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_host_count), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_share(group, count, rank)
    out_offset = Ref(Int64(0))
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_share), Int32, (Handle, Int64, Int64, Ptr{Int64}, Ptr{Int64}),
          group, count, rank, out_offset, out_count))
    return out_offset[], out_count[]
end

function zero_group_status(group)
    check(ccall(entry(libzero.zero_group_status), Int32, (Handle,), group))
    return nothing
end

function zero_group_abort(group, reason)
    check(ccall(entry(libzero.zero_group_abort), Int32, (Handle, Cstring), group, reason))
    return nothing
end

function zero_group_set_deadline(group, deadline_ms)
    check(ccall(entry(libzero.zero_group_set_deadline), Int32, (Handle, Int64), group, deadline_ms))
    return nothing
end

function zero_group_quiet(group)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_group_quiet), Int32, (Handle, Ptr{Int64}), group, out))
    return out[]
end

function zero_group_all_reduce(group, send, recv, dtype, op, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_all_reduce_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int32, Int32, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), dtype, op, stream, request)
    end
    return nothing
end

function zero_group_reduce_scatter(group, send, recv, dtype, op, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_reduce_scatter_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int32, Int32, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), dtype, op, stream, request)
    end
    return nothing
end

function zero_group_all_gather(group, send, recv, dtype, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_all_gather_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int32, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), dtype, stream, request)
    end
    return nothing
end

function zero_group_broadcast(group, data, dtype, root, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_broadcast_async), Int32, (Handle, Ptr{Cvoid}, Int64, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(data), length_of(data), dtype, root, stream, request)
    end
    return nothing
end

function zero_group_reduce(group, send, recv, dtype, op, root, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_reduce_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int32, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), dtype, op, root, stream, request)
    end
    return nothing
end

function zero_group_gather(group, send, recv, total, dtype, root, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_gather_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int64, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), total, dtype, root, stream, request)
    end
    return nothing
end

function zero_group_scatter(group, send, recv, total, dtype, root, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_scatter_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int64, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), total, dtype, root, stream, request)
    end
    return nothing
end

function zero_group_all_to_all(group, send, recv, dtype, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_all_to_all_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Int64, Int32, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), address_of(recv), length_of(recv), dtype, stream, request)
    end
    return nothing
end

function zero_group_send(group, send, dtype, peer, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_send_async), Int32, (Handle, Ptr{Cvoid}, Int64, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(send), length_of(send), dtype, peer, stream, request)
    end
    return nothing
end

function zero_group_recv(group, recv, dtype, peer, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_group_recv_async), Int32, (Handle, Ptr{Cvoid}, Int64, Int32, Int64, Ptr{Cvoid}, Ptr{Handle}),
              group, address_of(recv), length_of(recv), dtype, peer, stream, request)
    end
    return nothing
end

function zero_group_barrier(group)
    finish() do request
        ccall(entry(libzero.zero_group_barrier_async), Int32, (Handle, Ptr{Handle}), group, request)
    end
    return nothing
end

function zero_group_balance(group, seconds, items, total, unit)
    out = Ref(Int64(0))
    finish() do request
        ccall(entry(libzero.zero_group_balance_async), Int32, (Handle, Float64, Int64, Int64, Int64, Ptr{Int64}, Ptr{Handle}),
              group, seconds, items, total, unit, out, request)
    end
    return out[]
end

function zero_group_release(group)
    return ccall(entry(libzero.zero_group_release), Cvoid, (Handle,), group)
end

function zero_buffer_create(group, config, dtype, count)
    return finish(zero_request_buffer) do request
        ccall(entry(libzero.zero_buffer_create_async), Int32, (Handle, Handle, Int32, Int64, Ptr{Handle}),
              group, config, dtype, count, request)
    end
end

function zero_buffer_shard(buffer)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    out_offset = Ref(Int64(0))
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_buffer_shard), Int32, (Handle, Ptr{Ptr{Cvoid}}, Ptr{Int64}, Ptr{Int64}),
          buffer, out_data, out_offset, out_count))
    return out_data[], out_offset[], out_count[]
end

function zero_buffer_whole_acquire(buffer, stream = C_NULL)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    finish() do request
        ccall(entry(libzero.zero_buffer_whole_acquire_async), Int32, (Handle, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}, Ptr{Handle}),
              buffer, stream, out_data, request)
    end
    return out_data[]
end

function zero_buffer_whole_release(buffer)
    check(ccall(entry(libzero.zero_buffer_whole_release), Int32, (Handle,), buffer))
    return nothing
end

function zero_buffer_reduce_scatter(buffer, data, op, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_buffer_reduce_scatter_async), Int32, (Handle, Ptr{Cvoid}, Int64, Int32, Ptr{Cvoid}, Ptr{Handle}),
              buffer, address_of(data), length_of(data), op, stream, request)
    end
    return nothing
end

function zero_buffer_read(buffer, offset, data, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_buffer_read_async), Int32, (Handle, Int64, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Ptr{Handle}),
              buffer, offset, address_of(data), length_of(data), stream, request)
    end
    return nothing
end

function zero_buffer_write(buffer, offset, data, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_buffer_write_async), Int32, (Handle, Int64, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Ptr{Handle}),
              buffer, offset, address_of(data), length_of(data), stream, request)
    end
    return nothing
end

function zero_buffer_release(buffer)
    return ccall(entry(libzero.zero_buffer_release), Cvoid, (Handle,), buffer)
end

function zero_step_result_init(struct_size)
    out = Ref(StepResult())
    check(ccall(entry(libzero.zero_step_result_init), Int32, (Ptr{StepResult}, UInt64), out, struct_size))
    return out[]
end

function zero_verify_result_init(struct_size)
    out = Ref(VerifyResult())
    check(ccall(entry(libzero.zero_verify_result_init), Int32, (Ptr{VerifyResult}, UInt64), out, struct_size))
    return out[]
end

function zero_optimizer_create(group, config)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_optimizer_create), Int32, (Handle, Handle, Ptr{Handle}), group, config, out))
    return out[]
end

function zero_optimizer_add_set(optimizer, config)
    out_set = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_add_set), Int32, (Handle, Handle, Ptr{Int64}), optimizer, config, out_set))
    return out_set[]
end

function zero_optimizer_set_model_group(optimizer, group)
    check(ccall(entry(libzero.zero_optimizer_set_model_group), Int32, (Handle, Handle), optimizer, group))
    return nothing
end

function zero_optimizer_add_param(optimizer, config, name, dtype, shape)
    out_id = Ref(Int64(0))
    GC.@preserve shape check(ccall(entry(libzero.zero_optimizer_add_param), Int32, (Handle, Handle, Cstring, Int32, Ptr{Int64}, Int64, Ptr{Int64}),
          optimizer, config, name, dtype, address_of(shape), length_of(shape), out_id))
    return out_id[]
end

function zero_optimizer_set_order(optimizer, ids)
    GC.@preserve ids check(ccall(entry(libzero.zero_optimizer_set_order), Int32, (Handle, Ptr{Int64}, Int64),
          optimizer, address_of(ids), length_of(ids)))
    return nothing
end

function zero_optimizer_add_module_buffer(optimizer, name, dtype, shape, rule)
    out_id = Ref(Int64(0))
    GC.@preserve shape check(ccall(entry(libzero.zero_optimizer_add_module_buffer), Int32, (Handle, Cstring, Int32, Ptr{Int64}, Int64, Int32, Ptr{Int64}),
          optimizer, name, dtype, address_of(shape), length_of(shape), rule, out_id))
    return out_id[]
end

function zero_optimizer_set_gather_order(optimizer, ids)
    GC.@preserve ids check(ccall(entry(libzero.zero_optimizer_set_gather_order), Int32, (Handle, Ptr{Int64}, Int64),
          optimizer, address_of(ids), length_of(ids)))
    return nothing
end

function zero_optimizer_seal(optimizer)
    finish() do request
        ccall(entry(libzero.zero_optimizer_seal_async), Int32, (Handle, Ptr{Handle}), optimizer, request)
    end
    return nothing
end

function zero_optimizer_begin(optimizer, source)
    finish() do request
        ccall(entry(libzero.zero_optimizer_begin_async), Int32, (Handle, Int32, Ptr{Handle}), optimizer, source, request)
    end
    return nothing
end

function zero_optimizer_init_param(optimizer, id, initialiser, a, b, seed)
    check(ccall(entry(libzero.zero_optimizer_init_param), Int32, (Handle, Int64, Int32, Float64, Float64, Int64),
          optimizer, id, initialiser, a, b, seed))
    return nothing
end

function zero_optimizer_module_buffer(optimizer, id)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_module_buffer), Int32, (Handle, Int64, Ptr{Ptr{Cvoid}}, Ptr{Int64}),
          optimizer, id, out_data, out_count))
    return out_data[], out_count[]
end

function zero_optimizer_sync_module_buffers(optimizer, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_sync_module_buffers_async), Int32, (Handle, Ptr{Cvoid}, Ptr{Handle}), optimizer, stream, request)
    end
    return nothing
end

function zero_optimizer_param_acquire(optimizer, id, dst, stream = C_NULL)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    finish() do request
        ccall(entry(libzero.zero_optimizer_param_acquire_async), Int32, (Handle, Int64, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}, Ptr{Handle}),
              optimizer, id, address_of(dst), length_of(dst), stream, out_data, request)
    end
    return out_data[]
end

function zero_optimizer_param_release(optimizer, id)
    check(ccall(entry(libzero.zero_optimizer_param_release), Int32, (Handle, Int64), optimizer, id))
    return nothing
end

function zero_optimizer_grad_acquire(optimizer, id, stream = C_NULL)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    out_accumulate = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_grad_acquire), Int32, (Handle, Int64, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}, Ptr{Int64}),
          optimizer, id, stream, out_data, out_accumulate))
    return out_data[], out_accumulate[]
end

function zero_optimizer_grad_ready(optimizer, id, grad, offset, count, stream = C_NULL)
    check(ccall(entry(libzero.zero_optimizer_grad_ready), Int32, (Handle, Int64, Ptr{Cvoid}, Int64, Int64, Ptr{Cvoid}),
          optimizer, id, grad, offset, count, stream))
    return nothing
end

function zero_optimizer_grad_ready_rows(optimizer, id, rows, values, count, stream = C_NULL)
    check(ccall(entry(libzero.zero_optimizer_grad_ready_rows), Int32, (Handle, Int64, Ptr{Int64}, Ptr{Cvoid}, Int64, Ptr{Cvoid}),
          optimizer, id, rows, values, count, stream))
    return nothing
end

function zero_optimizer_grads_ready(optimizer, ids, grads, stream = C_NULL)
    GC.@preserve ids check(ccall(entry(libzero.zero_optimizer_grads_ready), Int32, (Handle, Ptr{Int64}, Int64, Ptr{Ptr{Cvoid}}, Ptr{Cvoid}),
          optimizer, address_of(ids), length_of(ids), grads, stream))
    return nothing
end

function zero_optimizer_set_weight(optimizer, weight)
    check(ccall(entry(libzero.zero_optimizer_set_weight), Int32, (Handle, Float64), optimizer, weight))
    return nothing
end

function zero_optimizer_micro_step(optimizer, kind, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_micro_step_async), Int32, (Handle, Int32, Ptr{Cvoid}, Ptr{Handle}),
              optimizer, kind, stream, request)
    end
    return nothing
end

function zero_optimizer_step(optimizer, stream = C_NULL)
    out_result = Ref(StepResult())
    finish() do request
        ccall(entry(libzero.zero_optimizer_step_async), Int32, (Handle, Ptr{Cvoid}, Ptr{StepResult}, Ptr{Handle}),
              optimizer, stream, out_result, request)
    end
    return out_result[]
end

function zero_optimizer_reduce(optimizer, stream = C_NULL)
    out_result = Ref(StepResult())
    finish() do request
        ccall(entry(libzero.zero_optimizer_reduce_async), Int32, (Handle, Ptr{Cvoid}, Ptr{StepResult}, Ptr{Handle}),
              optimizer, stream, out_result, request)
    end
    return out_result[]
end

function zero_optimizer_apply(optimizer, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_apply_async), Int32, (Handle, Ptr{Cvoid}, Ptr{Handle}), optimizer, stream, request)
    end
    return nothing
end

function zero_optimizer_gather(optimizer, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_gather_async), Int32, (Handle, Ptr{Cvoid}, Ptr{Handle}), optimizer, stream, request)
    end
    return nothing
end

function zero_optimizer_view_count(optimizer)
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_view_count), Int32, (Handle, Ptr{Int64}), optimizer, out_count))
    return out_count[]
end

function zero_optimizer_view(optimizer, index, slot)
    out_param = Ref(Int64(0))
    out_offset = Ref(Int64(0))
    out_count = Ref(Int64(0))
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    check(ccall(entry(libzero.zero_optimizer_view), Int32, (Handle, Int64, Int32, Ptr{Int64}, Ptr{Int64}, Ptr{Int64}, Ptr{Ptr{Cvoid}}),
          optimizer, index, slot, out_param, out_offset, out_count, out_data))
    return out_param[], out_offset[], out_count[], out_data[]
end

function zero_optimizer_verify(optimizer, stream = C_NULL)
    out_result = Ref(VerifyResult())
    finish() do request
        ccall(entry(libzero.zero_optimizer_verify_async), Int32, (Handle, Ptr{Cvoid}, Ptr{VerifyResult}, Ptr{Handle}),
              optimizer, stream, out_result, request)
    end
    return out_result[]
end

function zero_optimizer_release(optimizer)
    return ccall(entry(libzero.zero_optimizer_release), Cvoid, (Handle,), optimizer)
end

function zero_optimizer_sync(optimizer, stream = C_NULL)
    out_result = Ref(StepResult())
    finish() do request
        ccall(entry(libzero.zero_optimizer_sync_async), Int32, (Handle, Ptr{Cvoid}, Ptr{StepResult}, Ptr{Handle}),
              optimizer, stream, out_result, request)
    end
    return out_result[]
end

function zero_optimizer_request_stop(optimizer, reason)
    check(ccall(entry(libzero.zero_optimizer_request_stop), Int32, (Handle, Int64), optimizer, reason))
    return nothing
end

function zero_optimizer_set_f64(optimizer, set, key, value)
    check(ccall(entry(libzero.zero_optimizer_set_f64), Int32, (Handle, Int64, Int32, Float64), optimizer, set, key, value))
    return nothing
end

function zero_optimizer_get_f64(optimizer, set, key)
    out = Ref(Float64(0))
    check(ccall(entry(libzero.zero_optimizer_get_f64), Int32, (Handle, Int64, Int32, Ptr{Float64}), optimizer, set, key, out))
    return out[]
end

function zero_optimizer_set_i64(optimizer, key, value)
    check(ccall(entry(libzero.zero_optimizer_set_i64), Int32, (Handle, Int32, Int64), optimizer, key, value))
    return nothing
end

function zero_optimizer_get_i64(optimizer, key)
    out = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_get_i64), Int32, (Handle, Int32, Ptr{Int64}), optimizer, key, out))
    return out[]
end

function zero_optimizer_slot_count(optimizer, id)
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_slot_count), Int32, (Handle, Int64, Ptr{Int64}), optimizer, id, out_count))
    return out_count[]
end

function zero_optimizer_slot(optimizer, id, index)
    out_slot = Ref(Int64(0))
    out_dtype = Ref(Int64(0))
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_optimizer_slot), Int32, (Handle, Int64, Int64, Ptr{Int64}, Ptr{Int64}, Ptr{Int64}),
          optimizer, id, index, out_slot, out_dtype, out_count))
    return out_slot[], out_dtype[], out_count[]
end

function zero_optimizer_read(optimizer, id, slot, offset, data, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_read_async), Int32, (Handle, Int64, Int32, Int64, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Ptr{Handle}),
              optimizer, id, slot, offset, address_of(data), length_of(data), stream, request)
    end
    return nothing
end

function zero_optimizer_write(optimizer, id, slot, offset, data, stream = C_NULL)
    finish() do request
        ccall(entry(libzero.zero_optimizer_write_async), Int32, (Handle, Int64, Int32, Int64, Ptr{Cvoid}, Int64, Ptr{Cvoid}, Ptr{Handle}),
              optimizer, id, slot, offset, address_of(data), length_of(data), stream, request)
    end
    return nothing
end

function zero_optimizer_result(optimizer, stream = C_NULL)
    out_result = Ref(StepResult())
    check(ccall(entry(libzero.zero_optimizer_result), Int32, (Handle, Ptr{Cvoid}, Ptr{StepResult}), optimizer, stream, out_result))
    return out_result[]
end

function zero_optimizer_refresh(optimizer, stream = C_NULL)
    check(ccall(entry(libzero.zero_optimizer_refresh), Int32, (Handle, Ptr{Cvoid}), optimizer, stream))
    return nothing
end

function zero_optimizer_loss_scale_address(optimizer, stream = C_NULL)
    out_address = Ref(Ptr{Cvoid}(C_NULL))
    check(ccall(entry(libzero.zero_optimizer_loss_scale_address), Int32, (Handle, Ptr{Cvoid}, Ptr{Ptr{Cvoid}}),
          optimizer, stream, out_address))
    return out_address[]
end

function zero_checkpoint_result_init(struct_size)
    out = Ref(CheckpointResult())
    check(ccall(entry(libzero.zero_checkpoint_result_init), Int32, (Ptr{CheckpointResult}, UInt64), out, struct_size))
    return out[]
end

function zero_optimizer_resume(optimizer, folder, stream = C_NULL)
    out_found = Ref(Int64(0))
    finish() do request
        ccall(entry(libzero.zero_optimizer_resume_async), Int32, (Handle, Cstring, Ptr{Cvoid}, Ptr{Int64}, Ptr{Handle}),
              optimizer, folder, stream, out_found, request)
    end
    return out_found[]
end

function zero_checkpoint_create(group, config)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_checkpoint_create), Int32, (Handle, Handle, Ptr{Handle}), group, config, out))
    return out[]
end

function zero_checkpoint_add_optimizer(checkpoint, prefix, optimizer)
    check(ccall(entry(libzero.zero_checkpoint_add_optimizer), Int32, (Handle, Cstring, Handle), checkpoint, prefix, optimizer))
    return nothing
end

function zero_checkpoint_add_buffer(checkpoint, name, buffer)
    check(ccall(entry(libzero.zero_checkpoint_add_buffer), Int32, (Handle, Cstring, Handle), checkpoint, name, buffer))
    return nothing
end

function zero_checkpoint_add_tensor(checkpoint, name, dtype, shape, data, scope)
    GC.@preserve shape check(ccall(entry(libzero.zero_checkpoint_add_tensor), Int32, (Handle, Cstring, Int32, Ptr{Int64}, Int64, Ptr{Cvoid}, Int32),
          checkpoint, name, dtype, address_of(shape), length_of(shape), data, scope))
    return nothing
end

function zero_checkpoint_set_text(checkpoint, key, text)
    check(ccall(entry(libzero.zero_checkpoint_set_text), Int32, (Handle, Cstring, Cstring), checkpoint, key, text))
    return nothing
end

function zero_checkpoint_get_text(checkpoint, key)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_checkpoint_get_text), Int32, (Handle, Cstring, Ptr{UInt8}, Int64, Ptr{Int64}),
              checkpoint, key, out, out_nbytes, out_needed)
    end
end

function zero_checkpoint_rename(checkpoint, in_file, here)
    check(ccall(entry(libzero.zero_checkpoint_rename), Int32, (Handle, Cstring, Cstring), checkpoint, in_file, here))
    return nothing
end

function zero_checkpoint_load(checkpoint, folder, part, stream = C_NULL)
    out_result = Ref(CheckpointResult())
    finish() do request
        ccall(entry(libzero.zero_checkpoint_load_async), Int32, (Handle, Cstring, Int32, Ptr{Cvoid}, Ptr{CheckpointResult}, Ptr{Handle}),
              checkpoint, folder, part, stream, out_result, request)
    end
    return out_result[]
end

function zero_checkpoint_export(checkpoint, path, dtype, stream = C_NULL)
    out_result = Ref(CheckpointResult())
    finish() do request
        ccall(entry(libzero.zero_checkpoint_export_async), Int32, (Handle, Cstring, Int32, Ptr{Cvoid}, Ptr{CheckpointResult}, Ptr{Handle}),
              checkpoint, path, dtype, stream, out_result, request)
    end
    return out_result[]
end

function zero_checkpoint_skipped(checkpoint)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_checkpoint_skipped), Int32, (Handle, Ptr{UInt8}, Int64, Ptr{Int64}),
              checkpoint, out, out_nbytes, out_needed)
    end
end

function zero_checkpoint_release(checkpoint)
    return ccall(entry(libzero.zero_checkpoint_release), Cvoid, (Handle,), checkpoint)
end

function zero_save_open(path)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_save_open), Int32, (Cstring, Ptr{Handle}), path, out))
    return out[]
end

function zero_save_list(folder, form)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_save_list), Int32, (Cstring, Int32, Ptr{UInt8}, Int64, Ptr{Int64}),
              folder, form, out, out_nbytes, out_needed)
    end
end

function zero_save_describe(save, form)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_save_describe), Int32, (Handle, Int32, Ptr{UInt8}, Int64, Ptr{Int64}),
              save, form, out, out_nbytes, out_needed)
    end
end

function zero_save_verify(save)
    check(ccall(entry(libzero.zero_save_verify), Int32, (Handle,), save))
    return nothing
end

function zero_save_compare(save, other)
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_save_compare), Int32, (Handle, Handle, Ptr{Int64}), save, other, out_count))
    return out_count[]
end

function zero_save_differences(save, form)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_save_differences), Int32, (Handle, Int32, Ptr{UInt8}, Int64, Ptr{Int64}),
              save, form, out, out_nbytes, out_needed)
    end
end

function zero_save_export(save, path)
    check(ccall(entry(libzero.zero_save_export), Int32, (Handle, Cstring), save, path))
    return nothing
end

function zero_save_prunable(folder, keep)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_save_prunable), Int32, (Cstring, Int64, Ptr{UInt8}, Int64, Ptr{Int64}),
              folder, keep, out, out_nbytes, out_needed)
    end
end

function zero_save_remove(folder, name)
    check(ccall(entry(libzero.zero_save_remove), Int32, (Cstring, Cstring), folder, name))
    return nothing
end

function zero_save_progress(save)
    out_done = Ref(Int64(0))
    out_total = Ref(Int64(0))
    check(ccall(entry(libzero.zero_save_progress), Int32, (Handle, Ptr{Int64}, Ptr{Int64}), save, out_done, out_total))
    return out_done[], out_total[]
end

function zero_save_release(save)
    return ccall(entry(libzero.zero_save_release), Cvoid, (Handle,), save)
end

function zero_server_result_init(struct_size)
    out = Ref(ServerResult())
    check(ccall(entry(libzero.zero_server_result_init), Int32, (Ptr{ServerResult}, UInt64), out, struct_size))
    return out[]
end

function zero_server_create(group, config, count)
    out = Ref(Handle(C_NULL))
    check(ccall(entry(libzero.zero_server_create), Int32, (Handle, Handle, Int64, Ptr{Handle}), group, config, count, out))
    return out[]
end

function zero_server_seal(server)
    finish() do request
        ccall(entry(libzero.zero_server_seal_async), Int32, (Handle, Ptr{Handle}), server, request)
    end
    return nothing
end

function zero_server_shard(server)
    out_data = Ref(Ptr{Cvoid}(C_NULL))
    out_offset = Ref(Int64(0))
    out_count = Ref(Int64(0))
    check(ccall(entry(libzero.zero_server_shard), Int32, (Handle, Ptr{Ptr{Cvoid}}, Ptr{Int64}, Ptr{Int64}),
          server, out_data, out_offset, out_count))
    return out_data[], out_offset[], out_count[]
end

function zero_server_replay(server, data)
    GC.@preserve data check(ccall(entry(libzero.zero_server_replay), Int32, (Handle, Ptr{Cvoid}, Int64),
          server, address_of(data), length_of(data)))
    return nothing
end

function zero_server_record(server, data)
    out_count = Ref(Int64(0))
    GC.@preserve data check(ccall(entry(libzero.zero_server_record), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Int64}),
          server, address_of(data), length_of(data), out_count))
    return out_count[]
end

function zero_server_run(server)
    out_result = Ref(ServerResult())
    finish() do request
        ccall(entry(libzero.zero_server_run_async), Int32, (Handle, Ptr{ServerResult}, Ptr{Handle}), server, out_result, request)
    end
    return out_result[]
end

function zero_server_push(server, data)
    finish() do request
        ccall(entry(libzero.zero_server_push_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Handle}),
              server, address_of(data), length_of(data), request)
    end
    return nothing
end

function zero_server_pull(server, data)
    finish() do request
        ccall(entry(libzero.zero_server_pull_async), Int32, (Handle, Ptr{Cvoid}, Int64, Ptr{Handle}),
              server, address_of(data), length_of(data), request)
    end
    return nothing
end

function zero_server_leave(server)
    finish() do request
        ccall(entry(libzero.zero_server_leave_async), Int32, (Handle, Ptr{Handle}), server, request)
    end
    return nothing
end

function zero_server_release(server)
    return ccall(entry(libzero.zero_server_release), Cvoid, (Handle,), server)
end

function zero_memory_stats_init(struct_size)
    out = Ref(MemoryStats())
    check(ccall(entry(libzero.zero_memory_stats_init), Int32, (Ptr{MemoryStats}, UInt64), out, struct_size))
    return out[]
end

function zero_stats_optimizer_memory(optimizer, category)
    out = Ref(MemoryStats())
    check(ccall(entry(libzero.zero_stats_optimizer_memory), Int32, (Handle, Int32, Ptr{MemoryStats}), optimizer, category, out))
    return out[]
end

function zero_stats_buffer_memory(buffer, category)
    out = Ref(MemoryStats())
    check(ccall(entry(libzero.zero_stats_buffer_memory), Int32, (Handle, Int32, Ptr{MemoryStats}), buffer, category, out))
    return out[]
end

function zero_traffic_stats_init(struct_size)
    out = Ref(TrafficStats())
    check(ccall(entry(libzero.zero_traffic_stats_init), Int32, (Ptr{TrafficStats}, UInt64), out, struct_size))
    return out[]
end

function zero_stats_group_traffic(group, operation)
    out = Ref(TrafficStats())
    check(ccall(entry(libzero.zero_stats_group_traffic), Int32, (Handle, Int32, Ptr{TrafficStats}), group, operation, out))
    return out[]
end

function zero_stats_optimizer_traffic(optimizer, operation)
    out = Ref(TrafficStats())
    check(ccall(entry(libzero.zero_stats_optimizer_traffic), Int32, (Handle, Int32, Ptr{TrafficStats}), optimizer, operation, out))
    return out[]
end

function zero_step_stats_init(struct_size)
    out = Ref(StepStats())
    check(ccall(entry(libzero.zero_step_stats_init), Int32, (Ptr{StepStats}, UInt64), out, struct_size))
    return out[]
end

function zero_stats_optimizer_step(optimizer)
    out = Ref(StepStats())
    check(ccall(entry(libzero.zero_stats_optimizer_step), Int32, (Handle, Ptr{StepStats}), optimizer, out))
    return out[]
end

function zero_describe_library()
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_describe_library), Int32, (Ptr{UInt8}, Int64, Ptr{Int64}), out, out_nbytes, out_needed)
    end
end

function zero_describe_group(group)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_describe_group), Int32, (Handle, Ptr{UInt8}, Int64, Ptr{Int64}), group, out, out_nbytes, out_needed)
    end
end

function zero_describe_optimizer(optimizer)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_describe_optimizer), Int32, (Handle, Ptr{UInt8}, Int64, Ptr{Int64}),
              optimizer, out, out_nbytes, out_needed)
    end
end

function zero_stats_optimizer_trace(optimizer)
    return text() do out, out_nbytes, out_needed
        ccall(entry(libzero.zero_stats_optimizer_trace), Int32, (Handle, Ptr{UInt8}, Int64, Ptr{Int64}),
              optimizer, out, out_nbytes, out_needed)
    end
end

function zero_abi_version()
    return ccall(entry(libzero.zero_abi_version), Int64, ())
end

function zero_version()
    return unsafe_string(ccall(entry(libzero.zero_version), Cstring, ()))
end

function zero_has_feature(feature)
    return ccall(entry(libzero.zero_has_feature), Int64, (Int32,), feature)
end

# Every constant by name, for checks against other languages.
const CONSTANTS = [
    "ZERO_OK" => Int64(ZERO_OK),
    "ZERO_E_INVALID_ARGUMENT" => Int64(ZERO_E_INVALID_ARGUMENT),
    "ZERO_E_BAD_HANDLE" => Int64(ZERO_E_BAD_HANDLE),
    "ZERO_E_UNSUPPORTED" => Int64(ZERO_E_UNSUPPORTED),
    "ZERO_E_STATE" => Int64(ZERO_E_STATE),
    "ZERO_E_OUT_OF_MEMORY" => Int64(ZERO_E_OUT_OF_MEMORY),
    "ZERO_E_BUSY" => Int64(ZERO_E_BUSY),
    "ZERO_E_MODULE" => Int64(ZERO_E_MODULE),
    "ZERO_E_RENDEZVOUS" => Int64(ZERO_E_RENDEZVOUS),
    "ZERO_E_SYSTEM" => Int64(ZERO_E_SYSTEM),
    "ZERO_E_LAUNCHER" => Int64(ZERO_E_LAUNCHER),
    "ZERO_E_DEVICE" => Int64(ZERO_E_DEVICE),
    "ZERO_E_CHECKPOINT" => Int64(ZERO_E_CHECKPOINT),
    "ZERO_E_NOT_FOUND" => Int64(ZERO_E_NOT_FOUND),
    "ZERO_E_REPLICAS_DIFFER" => Int64(ZERO_E_REPLICAS_DIFFER),
    "ZERO_E_POOL_LIMIT" => Int64(ZERO_E_POOL_LIMIT),
    "ZERO_E_CORRUPT" => Int64(ZERO_E_CORRUPT),
    "ZERO_E_DEVICE_FAILED" => Int64(ZERO_E_DEVICE_FAILED),
    "ZERO_E_TIMEOUT" => Int64(ZERO_E_TIMEOUT),
    "ZERO_E_PEER_LOST" => Int64(ZERO_E_PEER_LOST),
    "ZERO_E_PEER_LEFT" => Int64(ZERO_E_PEER_LEFT),
    "ZERO_E_PEER_FAILED" => Int64(ZERO_E_PEER_FAILED),
    "ZERO_E_MISMATCH" => Int64(ZERO_E_MISMATCH),
    "ZERO_E_ABORTED" => Int64(ZERO_E_ABORTED),
    "ZERO_E_TRANSPORT" => Int64(ZERO_E_TRANSPORT),
    "ZERO_E_FORKED" => Int64(ZERO_E_FORKED),
    "ZERO_E_INTERNAL" => Int64(ZERO_E_INTERNAL),
    "ZERO_DTYPE_F32" => Int64(ZERO_DTYPE_F32),
    "ZERO_DTYPE_F64" => Int64(ZERO_DTYPE_F64),
    "ZERO_DTYPE_F16" => Int64(ZERO_DTYPE_F16),
    "ZERO_DTYPE_BF16" => Int64(ZERO_DTYPE_BF16),
    "ZERO_DTYPE_I32" => Int64(ZERO_DTYPE_I32),
    "ZERO_DTYPE_I64" => Int64(ZERO_DTYPE_I64),
    "ZERO_DTYPE_U8" => Int64(ZERO_DTYPE_U8),
    "ZERO_DTYPE_U16" => Int64(ZERO_DTYPE_U16),
    "ZERO_DTYPE_F8_E4M3" => Int64(ZERO_DTYPE_F8_E4M3),
    "ZERO_DTYPE_F8_UE5M3" => Int64(ZERO_DTYPE_F8_UE5M3),
    "ZERO_KEY_DEADLINE_MS" => Int64(ZERO_KEY_DEADLINE_MS),
    "ZERO_KEY_RENDEZVOUS_MS" => Int64(ZERO_KEY_RENDEZVOUS_MS),
    "ZERO_KEY_THREADS" => Int64(ZERO_KEY_THREADS),
    "ZERO_KEY_STAGING_BYTES" => Int64(ZERO_KEY_STAGING_BYTES),
    "ZERO_KEY_MPI_MODULE" => Int64(ZERO_KEY_MPI_MODULE),
    "ZERO_KEY_MPI_SHARED" => Int64(ZERO_KEY_MPI_SHARED),
    "ZERO_KEY_NCCL" => Int64(ZERO_KEY_NCCL),
    "ZERO_KEY_NCCL_MODULE" => Int64(ZERO_KEY_NCCL_MODULE),
    "ZERO_KEY_RENDEZVOUS_PORT" => Int64(ZERO_KEY_RENDEZVOUS_PORT),
    "ZERO_KEY_RENDEZVOUS_HOST" => Int64(ZERO_KEY_RENDEZVOUS_HOST),
    "ZERO_KEY_SHARD_WEIGHTS" => Int64(ZERO_KEY_SHARD_WEIGHTS),
    "ZERO_KEY_STAGE" => Int64(ZERO_KEY_STAGE),
    "ZERO_KEY_ALGORITHM" => Int64(ZERO_KEY_ALGORITHM),
    "ZERO_KEY_BUCKET_BYTES" => Int64(ZERO_KEY_BUCKET_BYTES),
    "ZERO_KEY_DIVISOR" => Int64(ZERO_KEY_DIVISOR),
    "ZERO_KEY_NONFINITE" => Int64(ZERO_KEY_NONFINITE),
    "ZERO_KEY_GRAD_NORM" => Int64(ZERO_KEY_GRAD_NORM),
    "ZERO_KEY_OVERLAP" => Int64(ZERO_KEY_OVERLAP),
    "ZERO_KEY_POOL_LIMIT" => Int64(ZERO_KEY_POOL_LIMIT),
    "ZERO_KEY_CUSTOM_SLOTS" => Int64(ZERO_KEY_CUSTOM_SLOTS),
    "ZERO_KEY_CLIP_NORM" => Int64(ZERO_KEY_CLIP_NORM),
    "ZERO_KEY_CLIP_VALUE" => Int64(ZERO_KEY_CLIP_VALUE),
    "ZERO_KEY_LOSS_SCALE" => Int64(ZERO_KEY_LOSS_SCALE),
    "ZERO_KEY_LOSS_SCALE_DYNAMIC" => Int64(ZERO_KEY_LOSS_SCALE_DYNAMIC),
    "ZERO_KEY_LOSS_SCALE_WINDOW" => Int64(ZERO_KEY_LOSS_SCALE_WINDOW),
    "ZERO_KEY_LOSS_SCALE_HYSTERESIS" => Int64(ZERO_KEY_LOSS_SCALE_HYSTERESIS),
    "ZERO_KEY_LOSS_SCALE_BACKOFF" => Int64(ZERO_KEY_LOSS_SCALE_BACKOFF),
    "ZERO_KEY_LOSS_SCALE_GROWTH" => Int64(ZERO_KEY_LOSS_SCALE_GROWTH),
    "ZERO_KEY_LOSS_SCALE_MIN" => Int64(ZERO_KEY_LOSS_SCALE_MIN),
    "ZERO_KEY_LOSS_SCALE_MAX" => Int64(ZERO_KEY_LOSS_SCALE_MAX),
    "ZERO_KEY_ROUNDING" => Int64(ZERO_KEY_ROUNDING),
    "ZERO_KEY_SEED" => Int64(ZERO_KEY_SEED),
    "ZERO_KEY_UNFILLED" => Int64(ZERO_KEY_UNFILLED),
    "ZERO_KEY_ACCUMULATE_DTYPE" => Int64(ZERO_KEY_ACCUMULATE_DTYPE),
    "ZERO_KEY_AVERAGE" => Int64(ZERO_KEY_AVERAGE),
    "ZERO_KEY_GATHER_BELOW" => Int64(ZERO_KEY_GATHER_BELOW),
    "ZERO_KEY_PREFETCH_BYTES" => Int64(ZERO_KEY_PREFETCH_BYTES),
    "ZERO_KEY_VERIFY_EVERY" => Int64(ZERO_KEY_VERIFY_EVERY),
    "ZERO_KEY_MEMORY_LIMIT" => Int64(ZERO_KEY_MEMORY_LIMIT),
    "ZERO_KEY_TRACE_EVENTS" => Int64(ZERO_KEY_TRACE_EVENTS),
    "ZERO_KEY_ONE_COPY" => Int64(ZERO_KEY_ONE_COPY),
    "ZERO_KEY_DEVICE" => Int64(ZERO_KEY_DEVICE),
    "ZERO_KEY_CUDA_MODULE" => Int64(ZERO_KEY_CUDA_MODULE),
    "ZERO_KEY_TIER" => Int64(ZERO_KEY_TIER),
    "ZERO_KEY_REPLICA_RANKS" => Int64(ZERO_KEY_REPLICA_RANKS),
    "ZERO_KEY_SYNC_PERIOD" => Int64(ZERO_KEY_SYNC_PERIOD),
    "ZERO_KEY_SYNC_AFTER" => Int64(ZERO_KEY_SYNC_AFTER),
    "ZERO_KEY_SYNC_FRAGMENTS" => Int64(ZERO_KEY_SYNC_FRAGMENTS),
    "ZERO_KEY_SYNC_DELAY" => Int64(ZERO_KEY_SYNC_DELAY),
    "ZERO_KEY_CODE_RANK" => Int64(ZERO_KEY_CODE_RANK),
    "ZERO_KEY_GRAD_CODE" => Int64(ZERO_KEY_GRAD_CODE),
    "ZERO_KEY_GATHER_CODE" => Int64(ZERO_KEY_GATHER_CODE),
    "ZERO_KEY_SYNC_CODE" => Int64(ZERO_KEY_SYNC_CODE),
    "ZERO_KEY_CODE_TOP" => Int64(ZERO_KEY_CODE_TOP),
    "ZERO_KEY_CODE_AFTER" => Int64(ZERO_KEY_CODE_AFTER),
    "ZERO_KEY_RESIDUAL" => Int64(ZERO_KEY_RESIDUAL),
    "ZERO_KEY_FLUSH_PERIOD" => Int64(ZERO_KEY_FLUSH_PERIOD),
    "ZERO_KEY_PARAM_RANKS" => Int64(ZERO_KEY_PARAM_RANKS),
    "ZERO_KEY_NEIGHBOURS" => Int64(ZERO_KEY_NEIGHBOURS),
    "ZERO_KEY_GRAD_DELAY" => Int64(ZERO_KEY_GRAD_DELAY),
    "ZERO_KEY_STRATEGY" => Int64(ZERO_KEY_STRATEGY),
    "ZERO_KEY_SET" => Int64(ZERO_KEY_SET),
    "ZERO_KEY_FROZEN" => Int64(ZERO_KEY_FROZEN),
    "ZERO_KEY_GRAD_DTYPE" => Int64(ZERO_KEY_GRAD_DTYPE),
    "ZERO_KEY_MASTER" => Int64(ZERO_KEY_MASTER),
    "ZERO_KEY_FIRST_MOMENT_DTYPE" => Int64(ZERO_KEY_FIRST_MOMENT_DTYPE),
    "ZERO_KEY_SECOND_MOMENT_DTYPE" => Int64(ZERO_KEY_SECOND_MOMENT_DTYPE),
    "ZERO_KEY_REPLICATED" => Int64(ZERO_KEY_REPLICATED),
    "ZERO_KEY_TIED_TO" => Int64(ZERO_KEY_TIED_TO),
    "ZERO_KEY_PARAM_DTYPE" => Int64(ZERO_KEY_PARAM_DTYPE),
    "ZERO_KEY_ROWS" => Int64(ZERO_KEY_ROWS),
    "ZERO_KEY_LR" => Int64(ZERO_KEY_LR),
    "ZERO_KEY_MOMENTUM" => Int64(ZERO_KEY_MOMENTUM),
    "ZERO_KEY_DAMPENING" => Int64(ZERO_KEY_DAMPENING),
    "ZERO_KEY_NESTEROV" => Int64(ZERO_KEY_NESTEROV),
    "ZERO_KEY_BETA1" => Int64(ZERO_KEY_BETA1),
    "ZERO_KEY_BETA2" => Int64(ZERO_KEY_BETA2),
    "ZERO_KEY_EPSILON" => Int64(ZERO_KEY_EPSILON),
    "ZERO_KEY_WEIGHT_DECAY" => Int64(ZERO_KEY_WEIGHT_DECAY),
    "ZERO_KEY_LR_DECAY" => Int64(ZERO_KEY_LR_DECAY),
    "ZERO_KEY_INITIAL_ACCUMULATOR" => Int64(ZERO_KEY_INITIAL_ACCUMULATOR),
    "ZERO_KEY_NEWTON_SCHULZ_STEPS" => Int64(ZERO_KEY_NEWTON_SCHULZ_STEPS),
    "ZERO_KEY_AVERAGE_DECAY" => Int64(ZERO_KEY_AVERAGE_DECAY),
    "ZERO_KEY_OUTER_LR" => Int64(ZERO_KEY_OUTER_LR),
    "ZERO_KEY_OUTER_MOMENTUM" => Int64(ZERO_KEY_OUTER_MOMENTUM),
    "ZERO_KEY_SYNC_MIX" => Int64(ZERO_KEY_SYNC_MIX),
    "ZERO_KEY_CODE_MOMENTUM" => Int64(ZERO_KEY_CODE_MOMENTUM),
    "ZERO_KEY_CODE_FREEZE" => Int64(ZERO_KEY_CODE_FREEZE),
    "ZERO_KEY_STEP_COUNT" => Int64(ZERO_KEY_STEP_COUNT),
    "ZERO_KEY_SKIPPED_COUNT" => Int64(ZERO_KEY_SKIPPED_COUNT),
    "ZERO_KEY_GROWTH_COUNT" => Int64(ZERO_KEY_GROWTH_COUNT),
    "ZERO_KEY_OVERFLOW_COUNT" => Int64(ZERO_KEY_OVERFLOW_COUNT),
    "ZERO_KEY_CHECKPOINT_STAGING_BYTES" => Int64(ZERO_KEY_CHECKPOINT_STAGING_BYTES),
    "ZERO_KEY_CHECKPOINT_KEEP" => Int64(ZERO_KEY_CHECKPOINT_KEEP),
    "ZERO_KEY_CHECKPOINT_DIRECT" => Int64(ZERO_KEY_CHECKPOINT_DIRECT),
    "ZERO_KEY_CHECKPOINT_SYNC" => Int64(ZERO_KEY_CHECKPOINT_SYNC),
    "ZERO_KEY_CHECKPOINT_SNAPSHOT" => Int64(ZERO_KEY_CHECKPOINT_SNAPSHOT),
    "ZERO_KEY_CHECKPOINT_FILE_BYTES" => Int64(ZERO_KEY_CHECKPOINT_FILE_BYTES),
    "ZERO_KEY_CHECKPOINT_PROGRESS_MS" => Int64(ZERO_KEY_CHECKPOINT_PROGRESS_MS),
    "ZERO_KEY_CHECKPOINT_CONVERT" => Int64(ZERO_KEY_CHECKPOINT_CONVERT),
    "ZERO_KEY_CHECKPOINT_MISSING" => Int64(ZERO_KEY_CHECKPOINT_MISSING),
    "ZERO_KEY_CHECKPOINT_EXTRA" => Int64(ZERO_KEY_CHECKPOINT_EXTRA),
    "ZERO_KEY_CHECKPOINT_MODEL_FILES" => Int64(ZERO_KEY_CHECKPOINT_MODEL_FILES),
    "ZERO_KEY_SERVER_RANKS" => Int64(ZERO_KEY_SERVER_RANKS),
    "ZERO_KEY_SERVER_ORDER" => Int64(ZERO_KEY_SERVER_ORDER),
    "ZERO_KEY_SERVER_STALENESS" => Int64(ZERO_KEY_SERVER_STALENESS),
    "ZERO_KEY_SERVER_RULE" => Int64(ZERO_KEY_SERVER_RULE),
    "ZERO_KEY_SERVER_RATE" => Int64(ZERO_KEY_SERVER_RATE),
    "ZERO_KEY_SERVER_PERIOD" => Int64(ZERO_KEY_SERVER_PERIOD),
    "ZERO_SERVER_ORDER_ROUND_ROBIN" => Int64(ZERO_SERVER_ORDER_ROUND_ROBIN),
    "ZERO_SERVER_ORDER_ARRIVAL" => Int64(ZERO_SERVER_ORDER_ARRIVAL),
    "ZERO_SERVER_RULE_UPDATE" => Int64(ZERO_SERVER_RULE_UPDATE),
    "ZERO_SERVER_RULE_AVERAGE" => Int64(ZERO_SERVER_RULE_AVERAGE),
    "ZERO_SERVER_RULE_MEAN" => Int64(ZERO_SERVER_RULE_MEAN),
    "ZERO_SNAPSHOT_COPY" => Int64(ZERO_SNAPSHOT_COPY),
    "ZERO_SNAPSHOT_LAZY" => Int64(ZERO_SNAPSHOT_LAZY),
    "ZERO_ROUNDING_NEAREST" => Int64(ZERO_ROUNDING_NEAREST),
    "ZERO_ROUNDING_STOCHASTIC" => Int64(ZERO_ROUNDING_STOCHASTIC),
    "ZERO_UNFILLED_ZERO" => Int64(ZERO_UNFILLED_ZERO),
    "ZERO_UNFILLED_UNTOUCHED" => Int64(ZERO_UNFILLED_UNTOUCHED),
    "ZERO_MASTER_F32" => Int64(ZERO_MASTER_F32),
    "ZERO_MASTER_NONE" => Int64(ZERO_MASTER_NONE),
    "ZERO_MASTER_REMAINDER" => Int64(ZERO_MASTER_REMAINDER),
    "ZERO_DIVISOR_RANKS" => Int64(ZERO_DIVISOR_RANKS),
    "ZERO_DIVISOR_ONE" => Int64(ZERO_DIVISOR_ONE),
    "ZERO_DIVISOR_WEIGHTS" => Int64(ZERO_DIVISOR_WEIGHTS),
    "ZERO_NONFINITE_SKIP" => Int64(ZERO_NONFINITE_SKIP),
    "ZERO_NONFINITE_PROPAGATE" => Int64(ZERO_NONFINITE_PROPAGATE),
    "ZERO_CODE_NONE" => Int64(ZERO_CODE_NONE),
    "ZERO_CODE_F8" => Int64(ZERO_CODE_F8),
    "ZERO_CODE_I8" => Int64(ZERO_CODE_I8),
    "ZERO_CODE_I4" => Int64(ZERO_CODE_I4),
    "ZERO_CODE_TOP" => Int64(ZERO_CODE_TOP),
    "ZERO_CODE_LOW_RANK" => Int64(ZERO_CODE_LOW_RANK),
    "ZERO_CODE_SIGN" => Int64(ZERO_CODE_SIGN),
    "ZERO_RESIDUAL_NONE" => Int64(ZERO_RESIDUAL_NONE),
    "ZERO_RESIDUAL_F32" => Int64(ZERO_RESIDUAL_F32),
    "ZERO_NEIGHBOURS_NONE" => Int64(ZERO_NEIGHBOURS_NONE),
    "ZERO_NEIGHBOURS_RING" => Int64(ZERO_NEIGHBOURS_RING),
    "ZERO_TIER_HOST" => Int64(ZERO_TIER_HOST),
    "ZERO_TIER_DEVICE" => Int64(ZERO_TIER_DEVICE),
    "ZERO_REDUCE_SUM" => Int64(ZERO_REDUCE_SUM),
    "ZERO_REDUCE_AVG" => Int64(ZERO_REDUCE_AVG),
    "ZERO_REDUCE_MIN" => Int64(ZERO_REDUCE_MIN),
    "ZERO_REDUCE_MAX" => Int64(ZERO_REDUCE_MAX),
    "ZERO_REDUCE_PROD" => Int64(ZERO_REDUCE_PROD),
    "ZERO_OPERATION_BARRIER" => Int64(ZERO_OPERATION_BARRIER),
    "ZERO_OPERATION_BROADCAST" => Int64(ZERO_OPERATION_BROADCAST),
    "ZERO_OPERATION_ALL_REDUCE" => Int64(ZERO_OPERATION_ALL_REDUCE),
    "ZERO_OPERATION_REDUCE_SCATTER" => Int64(ZERO_OPERATION_REDUCE_SCATTER),
    "ZERO_OPERATION_ALL_GATHER" => Int64(ZERO_OPERATION_ALL_GATHER),
    "ZERO_OPERATION_REDUCE" => Int64(ZERO_OPERATION_REDUCE),
    "ZERO_OPERATION_GATHER" => Int64(ZERO_OPERATION_GATHER),
    "ZERO_OPERATION_SCATTER" => Int64(ZERO_OPERATION_SCATTER),
    "ZERO_OPERATION_ALL_TO_ALL" => Int64(ZERO_OPERATION_ALL_TO_ALL),
    "ZERO_OPERATION_SEND" => Int64(ZERO_OPERATION_SEND),
    "ZERO_OPERATION_RECV" => Int64(ZERO_OPERATION_RECV),
    "ZERO_SLOT_PARAM" => Int64(ZERO_SLOT_PARAM),
    "ZERO_SLOT_GRAD" => Int64(ZERO_SLOT_GRAD),
    "ZERO_SLOT_MASTER" => Int64(ZERO_SLOT_MASTER),
    "ZERO_SLOT_AVERAGE" => Int64(ZERO_SLOT_AVERAGE),
    "ZERO_SLOT_PARAM_SCALE" => Int64(ZERO_SLOT_PARAM_SCALE),
    "ZERO_SLOT_ANCHOR" => Int64(ZERO_SLOT_ANCHOR),
    "ZERO_SLOT_UPDATE_COUNT" => Int64(ZERO_SLOT_UPDATE_COUNT),
    "ZERO_SLOT_FIRST_MOMENT" => Int64(ZERO_SLOT_FIRST_MOMENT),
    "ZERO_SLOT_SECOND_MOMENT" => Int64(ZERO_SLOT_SECOND_MOMENT),
    "ZERO_SLOT_OUTER_MOMENT" => Int64(ZERO_SLOT_OUTER_MOMENT),
    "ZERO_SLOT_FIRST_SCALE" => Int64(ZERO_SLOT_FIRST_SCALE),
    "ZERO_SLOT_SECOND_SCALE" => Int64(ZERO_SLOT_SECOND_SCALE),
    "ZERO_SLOT_CUSTOM" => Int64(ZERO_SLOT_CUSTOM),
    "ZERO_SOURCE_LOCAL" => Int64(ZERO_SOURCE_LOCAL),
    "ZERO_SOURCE_ROOT" => Int64(ZERO_SOURCE_ROOT),
    "ZERO_SOURCE_SHARDS" => Int64(ZERO_SOURCE_SHARDS),
    "ZERO_INITIALISER_CONSTANT" => Int64(ZERO_INITIALISER_CONSTANT),
    "ZERO_INITIALISER_UNIFORM" => Int64(ZERO_INITIALISER_UNIFORM),
    "ZERO_INITIALISER_NORMAL" => Int64(ZERO_INITIALISER_NORMAL),
    "ZERO_SYNC_NONE" => Int64(ZERO_SYNC_NONE),
    "ZERO_SYNC_AVERAGE" => Int64(ZERO_SYNC_AVERAGE),
    "ZERO_SYNC_BROADCAST" => Int64(ZERO_SYNC_BROADCAST),
    "ZERO_FINDING_NONE" => Int64(ZERO_FINDING_NONE),
    "ZERO_FINDING_SHARD" => Int64(ZERO_FINDING_SHARD),
    "ZERO_FINDING_REPLICAS" => Int64(ZERO_FINDING_REPLICAS),
    "ZERO_MICRO_STEP_LAST" => Int64(ZERO_MICRO_STEP_LAST),
    "ZERO_MICRO_STEP_LOCAL" => Int64(ZERO_MICRO_STEP_LOCAL),
    "ZERO_MICRO_STEP_REDUCE" => Int64(ZERO_MICRO_STEP_REDUCE),
    "ZERO_SCOPE_ONE" => Int64(ZERO_SCOPE_ONE),
    "ZERO_SCOPE_EACH" => Int64(ZERO_SCOPE_EACH),
    "ZERO_PART_ALL" => Int64(ZERO_PART_ALL),
    "ZERO_PART_PARAMS" => Int64(ZERO_PART_PARAMS),
    "ZERO_EXPORT_AS_KEPT" => Int64(ZERO_EXPORT_AS_KEPT),
    "ZERO_TEXT_PLAIN" => Int64(ZERO_TEXT_PLAIN),
    "ZERO_TEXT_JSON" => Int64(ZERO_TEXT_JSON),
    "ZERO_MEMORY_TOTAL" => Int64(ZERO_MEMORY_TOTAL),
    "ZERO_MEMORY_PARAM" => Int64(ZERO_MEMORY_PARAM),
    "ZERO_MEMORY_GRAD" => Int64(ZERO_MEMORY_GRAD),
    "ZERO_MEMORY_STATE" => Int64(ZERO_MEMORY_STATE),
    "ZERO_MEMORY_GRAD_POOL" => Int64(ZERO_MEMORY_GRAD_POOL),
    "ZERO_MEMORY_PARAM_POOL" => Int64(ZERO_MEMORY_PARAM_POOL),
    "ZERO_MEMORY_STAGING" => Int64(ZERO_MEMORY_STAGING),
    "ZERO_MEMORY_BUFFER" => Int64(ZERO_MEMORY_BUFFER),
    "ZERO_MEMORY_ACCUMULATED" => Int64(ZERO_MEMORY_ACCUMULATED),
    "ZERO_MEMORY_MODULE_BUFFER" => Int64(ZERO_MEMORY_MODULE_BUFFER),
    "ZERO_MEMORY_WORKSPACE" => Int64(ZERO_MEMORY_WORKSPACE),
    "ZERO_FEATURE_LOCAL" => Int64(ZERO_FEATURE_LOCAL),
    "ZERO_FEATURE_MPI" => Int64(ZERO_FEATURE_MPI),
    "ZERO_FEATURE_CUDA" => Int64(ZERO_FEATURE_CUDA),
    "ZERO_FEATURE_NCCL" => Int64(ZERO_FEATURE_NCCL),
    "ZERO_MPI_WORLD" => Int64(ZERO_MPI_WORLD),
    "ZERO_VERSION_MAJOR" => Int64(ZERO_VERSION_MAJOR),
    "ZERO_VERSION_MINOR" => Int64(ZERO_VERSION_MINOR),
    "ZERO_VERSION_PATCH" => Int64(ZERO_VERSION_PATCH),
    "ZERO_ABI_MAJOR" => Int64(ZERO_ABI_MAJOR),
    "ZERO_ABI_MINOR" => Int64(ZERO_ABI_MINOR),
]

# Every struct by its name in C, for checks of layout.
const STRUCTS = [
    "zero_key_bounds" => KeyBounds,
    "zero_step_result" => StepResult,
    "zero_verify_result" => VerifyResult,
    "zero_checkpoint_result" => CheckpointResult,
    "zero_server_result" => ServerResult,
    "zero_memory_stats" => MemoryStats,
    "zero_traffic_stats" => TrafficStats,
    "zero_step_stats" => StepStats,
]
