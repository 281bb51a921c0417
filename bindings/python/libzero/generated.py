"""Written by bindings/gen/generate.py from bindings/zero.i. Do not edit."""

import ctypes
import enum

from .structure import Structure


class Status(enum.IntEnum):
    """zero_status."""

    OK = 0
    E_INVALID_ARGUMENT = -100
    E_BAD_HANDLE = -101
    E_UNSUPPORTED = -102
    E_STATE = -103
    E_OUT_OF_MEMORY = -104
    E_BUSY = -105
    E_MODULE = -106
    E_RENDEZVOUS = -107
    E_SYSTEM = -108
    E_LAUNCHER = -109
    E_DEVICE = -110
    E_CHECKPOINT = -111
    E_NOT_FOUND = -112
    E_REPLICAS_DIFFER = -200
    E_POOL_LIMIT = -201
    E_CORRUPT = -202
    E_DEVICE_FAILED = -203
    E_TIMEOUT = -300
    E_PEER_LOST = -301
    E_PEER_LEFT = -302
    E_PEER_FAILED = -303
    E_MISMATCH = -304
    E_ABORTED = -305
    E_TRANSPORT = -306
    E_FORKED = -400
    E_INTERNAL = -401


class Dtype(enum.IntEnum):
    """zero_dtype."""

    F32 = 1
    F64 = 2
    F16 = 3
    BF16 = 4
    I32 = 20
    I64 = 21
    U8 = 40
    U16 = 41
    F8_E4M3 = 50
    F8_UE5M3 = 51


class Key(enum.IntEnum):
    """zero_key."""

    DEADLINE_MS = 100
    RENDEZVOUS_MS = 101
    THREADS = 102
    STAGING_BYTES = 103
    MPI_MODULE = 104
    MPI_SHARED = 105
    NCCL = 106
    NCCL_MODULE = 107
    RENDEZVOUS_PORT = 108
    RENDEZVOUS_HOST = 109
    SHARD_WEIGHTS = 200
    STAGE = 300
    ALGORITHM = 301
    BUCKET_BYTES = 302
    DIVISOR = 303
    NONFINITE = 304
    GRAD_NORM = 305
    OVERLAP = 306
    POOL_LIMIT = 307
    CUSTOM_SLOTS = 308
    CLIP_NORM = 309
    CLIP_VALUE = 310
    LOSS_SCALE = 311
    LOSS_SCALE_DYNAMIC = 312
    LOSS_SCALE_WINDOW = 313
    LOSS_SCALE_HYSTERESIS = 314
    LOSS_SCALE_BACKOFF = 315
    LOSS_SCALE_GROWTH = 316
    LOSS_SCALE_MIN = 317
    LOSS_SCALE_MAX = 318
    ROUNDING = 319
    SEED = 320
    UNFILLED = 321
    ACCUMULATE_DTYPE = 322
    AVERAGE = 323
    GATHER_BELOW = 324
    PREFETCH_BYTES = 325
    VERIFY_EVERY = 326
    MEMORY_LIMIT = 327
    TRACE_EVENTS = 328
    ONE_COPY = 329
    DEVICE = 330
    CUDA_MODULE = 331
    TIER = 332
    REPLICA_RANKS = 333
    SYNC_PERIOD = 334
    SYNC_AFTER = 335
    SYNC_FRAGMENTS = 336
    SYNC_DELAY = 337
    CODE_RANK = 338
    GRAD_CODE = 339
    GATHER_CODE = 340
    SYNC_CODE = 341
    CODE_TOP = 342
    CODE_AFTER = 343
    RESIDUAL = 344
    FLUSH_PERIOD = 345
    PARAM_RANKS = 346
    NEIGHBOURS = 347
    GRAD_DELAY = 348
    STRATEGY = 349
    SET = 350
    FROZEN = 351
    GRAD_DTYPE = 352
    MASTER = 353
    FIRST_MOMENT_DTYPE = 354
    SECOND_MOMENT_DTYPE = 355
    REPLICATED = 356
    TIED_TO = 357
    PARAM_DTYPE = 358
    ROWS = 359
    LR = 400
    MOMENTUM = 401
    DAMPENING = 402
    NESTEROV = 403
    BETA1 = 404
    BETA2 = 405
    EPSILON = 406
    WEIGHT_DECAY = 407
    LR_DECAY = 408
    INITIAL_ACCUMULATOR = 409
    NEWTON_SCHULZ_STEPS = 410
    AVERAGE_DECAY = 411
    OUTER_LR = 412
    OUTER_MOMENTUM = 413
    SYNC_MIX = 414
    CODE_MOMENTUM = 415
    CODE_FREEZE = 416
    STEP_COUNT = 500
    SKIPPED_COUNT = 501
    GROWTH_COUNT = 502
    OVERFLOW_COUNT = 503
    CHECKPOINT_STAGING_BYTES = 600
    CHECKPOINT_KEEP = 601
    CHECKPOINT_DIRECT = 602
    CHECKPOINT_SYNC = 603
    CHECKPOINT_SNAPSHOT = 605
    CHECKPOINT_FILE_BYTES = 606
    CHECKPOINT_PROGRESS_MS = 607
    CHECKPOINT_CONVERT = 608
    CHECKPOINT_MISSING = 609
    CHECKPOINT_EXTRA = 610
    CHECKPOINT_MODEL_FILES = 611
    SERVER_RANKS = 700
    SERVER_ORDER = 701
    SERVER_STALENESS = 702
    SERVER_RULE = 703
    SERVER_RATE = 704
    SERVER_PERIOD = 705


class ServerOrder(enum.IntEnum):
    """zero_server_order."""

    ROUND_ROBIN = 0
    ARRIVAL = 1


class ServerRule(enum.IntEnum):
    """zero_server_rule."""

    UPDATE = 0
    AVERAGE = 1
    MEAN = 2


class Snapshot(enum.IntEnum):
    """zero_snapshot."""

    COPY = 0
    LAZY = 1


class Rounding(enum.IntEnum):
    """zero_rounding."""

    NEAREST = 0
    STOCHASTIC = 1


class Unfilled(enum.IntEnum):
    """zero_unfilled."""

    ZERO = 0
    UNTOUCHED = 1


class Master(enum.IntEnum):
    """zero_master."""

    F32 = 0
    NONE = 1
    REMAINDER = 2


class Divisor(enum.IntEnum):
    """zero_divisor."""

    RANKS = 0
    ONE = 1
    WEIGHTS = 2


class Nonfinite(enum.IntEnum):
    """zero_nonfinite."""

    SKIP = 0
    PROPAGATE = 1


class Code(enum.IntEnum):
    """zero_code."""

    NONE = 0
    F8 = 1
    I8 = 2
    I4 = 3
    TOP = 4
    LOW_RANK = 5
    SIGN = 6


class Residual(enum.IntEnum):
    """zero_residual."""

    NONE = 0
    F32 = 1


class Neighbours(enum.IntEnum):
    """zero_neighbours."""

    NONE = 0
    RING = 1


class Tier(enum.IntEnum):
    """zero_tier."""

    HOST = 0
    DEVICE = 1


class Reduce(enum.IntEnum):
    """zero_reduce."""

    SUM = 1
    AVG = 2
    MIN = 3
    MAX = 4
    PROD = 5


class Operation(enum.IntEnum):
    """zero_operation."""

    BARRIER = 1
    BROADCAST = 2
    ALL_REDUCE = 3
    REDUCE_SCATTER = 4
    ALL_GATHER = 5
    REDUCE = 6
    GATHER = 7
    SCATTER = 8
    ALL_TO_ALL = 9
    SEND = 10
    RECV = 11


class Slot(enum.IntEnum):
    """zero_slot."""

    PARAM = 1
    GRAD = 2
    MASTER = 3
    AVERAGE = 4
    PARAM_SCALE = 5
    ANCHOR = 6
    UPDATE_COUNT = 8
    FIRST_MOMENT = 10
    SECOND_MOMENT = 11
    OUTER_MOMENT = 12
    FIRST_SCALE = 14
    SECOND_SCALE = 15
    CUSTOM = 20


class Source(enum.IntEnum):
    """zero_source."""

    LOCAL = 0
    ROOT = 1
    SHARDS = 2


class Initialiser(enum.IntEnum):
    """zero_initialiser."""

    CONSTANT = 0
    UNIFORM = 1
    NORMAL = 2


class Sync(enum.IntEnum):
    """zero_sync."""

    NONE = 0
    AVERAGE = 1
    BROADCAST = 2


class Finding(enum.IntEnum):
    """zero_finding."""

    NONE = 0
    SHARD = 1
    REPLICAS = 2


class MicroStep(enum.IntEnum):
    """zero_micro_step."""

    LAST = 0
    LOCAL = 1
    REDUCE = 2


class Scope(enum.IntEnum):
    """zero_scope."""

    ONE = 0
    EACH = 1


class Part(enum.IntEnum):
    """zero_part."""

    ALL = 0
    PARAMS = 1


class Export(enum.IntEnum):
    """zero_export."""

    AS_KEPT = 0


class TextForm(enum.IntEnum):
    """zero_text_form."""

    PLAIN = 0
    JSON = 1


class Memory(enum.IntEnum):
    """zero_memory."""

    TOTAL = 0
    PARAM = 1
    GRAD = 2
    STATE = 3
    GRAD_POOL = 4
    PARAM_POOL = 5
    STAGING = 6
    BUFFER = 7
    ACCUMULATED = 8
    MODULE_BUFFER = 9
    WORKSPACE = 10


class Feature(enum.IntEnum):
    """zero_feature."""

    LOCAL = 1
    MPI = 2
    CUDA = 3
    NCCL = 4


MPI_WORLD = -1
VERSION_MAJOR = 0
VERSION_MINOR = 1
VERSION_PATCH = 0
ABI_MAJOR = 0
ABI_MINOR = 1


class KeyBounds(Structure):
    """zero_key_bounds."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("type", ctypes.c_int64),
        ("min_i64", ctypes.c_int64),
        ("max_i64", ctypes.c_int64),
        ("default_i64", ctypes.c_int64),
        ("min_f64", ctypes.c_double),
        ("max_f64", ctypes.c_double),
        ("default_f64", ctypes.c_double),
    )


class StepResult(Structure):
    """zero_step_result."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("step", ctypes.c_int64),
        ("skipped", ctypes.c_int64),
        ("skipped_total", ctypes.c_int64),
        ("unfilled_count", ctypes.c_int64),
        ("grad_norm", ctypes.c_double),
        ("loss_scale", ctypes.c_double),
        ("stop_reason", ctypes.c_int64),
        ("synced", ctypes.c_int64),
        ("spread", ctypes.c_double),
    )


class VerifyResult(Structure):
    """zero_verify_result."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("found", ctypes.c_int64),
        ("chunk_count", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("other_rank", ctypes.c_int64),
        ("param", ctypes.c_int64),
        ("slot", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("replica_nbytes", ctypes.c_int64),
        ("shard_nbytes", ctypes.c_int64),
    )


class CheckpointResult(Structure):
    """zero_checkpoint_result."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("step", ctypes.c_int64),
        ("nbytes", ctypes.c_int64),
        ("file_count", ctypes.c_int64),
        ("write_ns", ctypes.c_int64),
        ("sync_ns", ctypes.c_int64),
        ("commit_ns", ctypes.c_int64),
        ("direct", ctypes.c_int64),
        ("missing", ctypes.c_int64),
        ("extra", ctypes.c_int64),
        ("converted", ctypes.c_int64),
        ("fallback", ctypes.c_int64),
        ("snapshot_nbytes", ctypes.c_int64),
        ("stall_ns", ctypes.c_int64),
    )


class ServerResult(Structure):
    """zero_server_result."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("push_count", ctypes.c_int64),
        ("pull_count", ctypes.c_int64),
        ("skipped_count", ctypes.c_int64),
        ("waited_count", ctypes.c_int64),
        ("left_count", ctypes.c_int64),
        ("lost_count", ctypes.c_int64),
        ("received_nbytes", ctypes.c_int64),
        ("sent_nbytes", ctypes.c_int64),
        ("greatest_age", ctypes.c_int64),
        ("age_0_count", ctypes.c_int64),
        ("age_1_count", ctypes.c_int64),
        ("age_2_count", ctypes.c_int64),
        ("age_4_count", ctypes.c_int64),
        ("age_8_count", ctypes.c_int64),
        ("age_16_count", ctypes.c_int64),
    )


class MemoryStats(Structure):
    """zero_memory_stats."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("now_nbytes", ctypes.c_int64),
        ("peak_nbytes", ctypes.c_int64),
        ("formula_nbytes", ctypes.c_int64),
        ("constant_nbytes", ctypes.c_int64),
    )


class TrafficStats(Structure):
    """zero_traffic_stats."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("call_count", ctypes.c_int64),
        ("sent_elements", ctypes.c_int64),
        ("sent_nbytes", ctypes.c_int64),
    )


class StepStats(Structure):
    """zero_step_stats."""

    _fields_ = (
        ("struct_size", ctypes.c_uint64),
        ("step_count", ctypes.c_int64),
        ("reduce_ns", ctypes.c_int64),
        ("apply_ns", ctypes.c_int64),
        ("gather_ns", ctypes.c_int64),
        ("stalled_nbytes", ctypes.c_int64),
        ("pool_grow_count", ctypes.c_int64),
        ("overlap_active", ctypes.c_int64),
    )


# Every constant by its name in C, for checks against other languages.
CONSTANTS = (
    ("ZERO_OK", Status.OK),
    ("ZERO_E_INVALID_ARGUMENT", Status.E_INVALID_ARGUMENT),
    ("ZERO_E_BAD_HANDLE", Status.E_BAD_HANDLE),
    ("ZERO_E_UNSUPPORTED", Status.E_UNSUPPORTED),
    ("ZERO_E_STATE", Status.E_STATE),
    ("ZERO_E_OUT_OF_MEMORY", Status.E_OUT_OF_MEMORY),
    ("ZERO_E_BUSY", Status.E_BUSY),
    ("ZERO_E_MODULE", Status.E_MODULE),
    ("ZERO_E_RENDEZVOUS", Status.E_RENDEZVOUS),
    ("ZERO_E_SYSTEM", Status.E_SYSTEM),
    ("ZERO_E_LAUNCHER", Status.E_LAUNCHER),
    ("ZERO_E_DEVICE", Status.E_DEVICE),
    ("ZERO_E_CHECKPOINT", Status.E_CHECKPOINT),
    ("ZERO_E_NOT_FOUND", Status.E_NOT_FOUND),
    ("ZERO_E_REPLICAS_DIFFER", Status.E_REPLICAS_DIFFER),
    ("ZERO_E_POOL_LIMIT", Status.E_POOL_LIMIT),
    ("ZERO_E_CORRUPT", Status.E_CORRUPT),
    ("ZERO_E_DEVICE_FAILED", Status.E_DEVICE_FAILED),
    ("ZERO_E_TIMEOUT", Status.E_TIMEOUT),
    ("ZERO_E_PEER_LOST", Status.E_PEER_LOST),
    ("ZERO_E_PEER_LEFT", Status.E_PEER_LEFT),
    ("ZERO_E_PEER_FAILED", Status.E_PEER_FAILED),
    ("ZERO_E_MISMATCH", Status.E_MISMATCH),
    ("ZERO_E_ABORTED", Status.E_ABORTED),
    ("ZERO_E_TRANSPORT", Status.E_TRANSPORT),
    ("ZERO_E_FORKED", Status.E_FORKED),
    ("ZERO_E_INTERNAL", Status.E_INTERNAL),
    ("ZERO_DTYPE_F32", Dtype.F32),
    ("ZERO_DTYPE_F64", Dtype.F64),
    ("ZERO_DTYPE_F16", Dtype.F16),
    ("ZERO_DTYPE_BF16", Dtype.BF16),
    ("ZERO_DTYPE_I32", Dtype.I32),
    ("ZERO_DTYPE_I64", Dtype.I64),
    ("ZERO_DTYPE_U8", Dtype.U8),
    ("ZERO_DTYPE_U16", Dtype.U16),
    ("ZERO_DTYPE_F8_E4M3", Dtype.F8_E4M3),
    ("ZERO_DTYPE_F8_UE5M3", Dtype.F8_UE5M3),
    ("ZERO_KEY_DEADLINE_MS", Key.DEADLINE_MS),
    ("ZERO_KEY_RENDEZVOUS_MS", Key.RENDEZVOUS_MS),
    ("ZERO_KEY_THREADS", Key.THREADS),
    ("ZERO_KEY_STAGING_BYTES", Key.STAGING_BYTES),
    ("ZERO_KEY_MPI_MODULE", Key.MPI_MODULE),
    ("ZERO_KEY_MPI_SHARED", Key.MPI_SHARED),
    ("ZERO_KEY_NCCL", Key.NCCL),
    ("ZERO_KEY_NCCL_MODULE", Key.NCCL_MODULE),
    ("ZERO_KEY_RENDEZVOUS_PORT", Key.RENDEZVOUS_PORT),
    ("ZERO_KEY_RENDEZVOUS_HOST", Key.RENDEZVOUS_HOST),
    ("ZERO_KEY_SHARD_WEIGHTS", Key.SHARD_WEIGHTS),
    ("ZERO_KEY_STAGE", Key.STAGE),
    ("ZERO_KEY_ALGORITHM", Key.ALGORITHM),
    ("ZERO_KEY_BUCKET_BYTES", Key.BUCKET_BYTES),
    ("ZERO_KEY_DIVISOR", Key.DIVISOR),
    ("ZERO_KEY_NONFINITE", Key.NONFINITE),
    ("ZERO_KEY_GRAD_NORM", Key.GRAD_NORM),
    ("ZERO_KEY_OVERLAP", Key.OVERLAP),
    ("ZERO_KEY_POOL_LIMIT", Key.POOL_LIMIT),
    ("ZERO_KEY_CUSTOM_SLOTS", Key.CUSTOM_SLOTS),
    ("ZERO_KEY_CLIP_NORM", Key.CLIP_NORM),
    ("ZERO_KEY_CLIP_VALUE", Key.CLIP_VALUE),
    ("ZERO_KEY_LOSS_SCALE", Key.LOSS_SCALE),
    ("ZERO_KEY_LOSS_SCALE_DYNAMIC", Key.LOSS_SCALE_DYNAMIC),
    ("ZERO_KEY_LOSS_SCALE_WINDOW", Key.LOSS_SCALE_WINDOW),
    ("ZERO_KEY_LOSS_SCALE_HYSTERESIS", Key.LOSS_SCALE_HYSTERESIS),
    ("ZERO_KEY_LOSS_SCALE_BACKOFF", Key.LOSS_SCALE_BACKOFF),
    ("ZERO_KEY_LOSS_SCALE_GROWTH", Key.LOSS_SCALE_GROWTH),
    ("ZERO_KEY_LOSS_SCALE_MIN", Key.LOSS_SCALE_MIN),
    ("ZERO_KEY_LOSS_SCALE_MAX", Key.LOSS_SCALE_MAX),
    ("ZERO_KEY_ROUNDING", Key.ROUNDING),
    ("ZERO_KEY_SEED", Key.SEED),
    ("ZERO_KEY_UNFILLED", Key.UNFILLED),
    ("ZERO_KEY_ACCUMULATE_DTYPE", Key.ACCUMULATE_DTYPE),
    ("ZERO_KEY_AVERAGE", Key.AVERAGE),
    ("ZERO_KEY_GATHER_BELOW", Key.GATHER_BELOW),
    ("ZERO_KEY_PREFETCH_BYTES", Key.PREFETCH_BYTES),
    ("ZERO_KEY_VERIFY_EVERY", Key.VERIFY_EVERY),
    ("ZERO_KEY_MEMORY_LIMIT", Key.MEMORY_LIMIT),
    ("ZERO_KEY_TRACE_EVENTS", Key.TRACE_EVENTS),
    ("ZERO_KEY_ONE_COPY", Key.ONE_COPY),
    ("ZERO_KEY_DEVICE", Key.DEVICE),
    ("ZERO_KEY_CUDA_MODULE", Key.CUDA_MODULE),
    ("ZERO_KEY_TIER", Key.TIER),
    ("ZERO_KEY_REPLICA_RANKS", Key.REPLICA_RANKS),
    ("ZERO_KEY_SYNC_PERIOD", Key.SYNC_PERIOD),
    ("ZERO_KEY_SYNC_AFTER", Key.SYNC_AFTER),
    ("ZERO_KEY_SYNC_FRAGMENTS", Key.SYNC_FRAGMENTS),
    ("ZERO_KEY_SYNC_DELAY", Key.SYNC_DELAY),
    ("ZERO_KEY_CODE_RANK", Key.CODE_RANK),
    ("ZERO_KEY_GRAD_CODE", Key.GRAD_CODE),
    ("ZERO_KEY_GATHER_CODE", Key.GATHER_CODE),
    ("ZERO_KEY_SYNC_CODE", Key.SYNC_CODE),
    ("ZERO_KEY_CODE_TOP", Key.CODE_TOP),
    ("ZERO_KEY_CODE_AFTER", Key.CODE_AFTER),
    ("ZERO_KEY_RESIDUAL", Key.RESIDUAL),
    ("ZERO_KEY_FLUSH_PERIOD", Key.FLUSH_PERIOD),
    ("ZERO_KEY_PARAM_RANKS", Key.PARAM_RANKS),
    ("ZERO_KEY_NEIGHBOURS", Key.NEIGHBOURS),
    ("ZERO_KEY_GRAD_DELAY", Key.GRAD_DELAY),
    ("ZERO_KEY_STRATEGY", Key.STRATEGY),
    ("ZERO_KEY_SET", Key.SET),
    ("ZERO_KEY_FROZEN", Key.FROZEN),
    ("ZERO_KEY_GRAD_DTYPE", Key.GRAD_DTYPE),
    ("ZERO_KEY_MASTER", Key.MASTER),
    ("ZERO_KEY_FIRST_MOMENT_DTYPE", Key.FIRST_MOMENT_DTYPE),
    ("ZERO_KEY_SECOND_MOMENT_DTYPE", Key.SECOND_MOMENT_DTYPE),
    ("ZERO_KEY_REPLICATED", Key.REPLICATED),
    ("ZERO_KEY_TIED_TO", Key.TIED_TO),
    ("ZERO_KEY_PARAM_DTYPE", Key.PARAM_DTYPE),
    ("ZERO_KEY_ROWS", Key.ROWS),
    ("ZERO_KEY_LR", Key.LR),
    ("ZERO_KEY_MOMENTUM", Key.MOMENTUM),
    ("ZERO_KEY_DAMPENING", Key.DAMPENING),
    ("ZERO_KEY_NESTEROV", Key.NESTEROV),
    ("ZERO_KEY_BETA1", Key.BETA1),
    ("ZERO_KEY_BETA2", Key.BETA2),
    ("ZERO_KEY_EPSILON", Key.EPSILON),
    ("ZERO_KEY_WEIGHT_DECAY", Key.WEIGHT_DECAY),
    ("ZERO_KEY_LR_DECAY", Key.LR_DECAY),
    ("ZERO_KEY_INITIAL_ACCUMULATOR", Key.INITIAL_ACCUMULATOR),
    ("ZERO_KEY_NEWTON_SCHULZ_STEPS", Key.NEWTON_SCHULZ_STEPS),
    ("ZERO_KEY_AVERAGE_DECAY", Key.AVERAGE_DECAY),
    ("ZERO_KEY_OUTER_LR", Key.OUTER_LR),
    ("ZERO_KEY_OUTER_MOMENTUM", Key.OUTER_MOMENTUM),
    ("ZERO_KEY_SYNC_MIX", Key.SYNC_MIX),
    ("ZERO_KEY_CODE_MOMENTUM", Key.CODE_MOMENTUM),
    ("ZERO_KEY_CODE_FREEZE", Key.CODE_FREEZE),
    ("ZERO_KEY_STEP_COUNT", Key.STEP_COUNT),
    ("ZERO_KEY_SKIPPED_COUNT", Key.SKIPPED_COUNT),
    ("ZERO_KEY_GROWTH_COUNT", Key.GROWTH_COUNT),
    ("ZERO_KEY_OVERFLOW_COUNT", Key.OVERFLOW_COUNT),
    ("ZERO_KEY_CHECKPOINT_STAGING_BYTES", Key.CHECKPOINT_STAGING_BYTES),
    ("ZERO_KEY_CHECKPOINT_KEEP", Key.CHECKPOINT_KEEP),
    ("ZERO_KEY_CHECKPOINT_DIRECT", Key.CHECKPOINT_DIRECT),
    ("ZERO_KEY_CHECKPOINT_SYNC", Key.CHECKPOINT_SYNC),
    ("ZERO_KEY_CHECKPOINT_SNAPSHOT", Key.CHECKPOINT_SNAPSHOT),
    ("ZERO_KEY_CHECKPOINT_FILE_BYTES", Key.CHECKPOINT_FILE_BYTES),
    ("ZERO_KEY_CHECKPOINT_PROGRESS_MS", Key.CHECKPOINT_PROGRESS_MS),
    ("ZERO_KEY_CHECKPOINT_CONVERT", Key.CHECKPOINT_CONVERT),
    ("ZERO_KEY_CHECKPOINT_MISSING", Key.CHECKPOINT_MISSING),
    ("ZERO_KEY_CHECKPOINT_EXTRA", Key.CHECKPOINT_EXTRA),
    ("ZERO_KEY_CHECKPOINT_MODEL_FILES", Key.CHECKPOINT_MODEL_FILES),
    ("ZERO_KEY_SERVER_RANKS", Key.SERVER_RANKS),
    ("ZERO_KEY_SERVER_ORDER", Key.SERVER_ORDER),
    ("ZERO_KEY_SERVER_STALENESS", Key.SERVER_STALENESS),
    ("ZERO_KEY_SERVER_RULE", Key.SERVER_RULE),
    ("ZERO_KEY_SERVER_RATE", Key.SERVER_RATE),
    ("ZERO_KEY_SERVER_PERIOD", Key.SERVER_PERIOD),
    ("ZERO_SERVER_ORDER_ROUND_ROBIN", ServerOrder.ROUND_ROBIN),
    ("ZERO_SERVER_ORDER_ARRIVAL", ServerOrder.ARRIVAL),
    ("ZERO_SERVER_RULE_UPDATE", ServerRule.UPDATE),
    ("ZERO_SERVER_RULE_AVERAGE", ServerRule.AVERAGE),
    ("ZERO_SERVER_RULE_MEAN", ServerRule.MEAN),
    ("ZERO_SNAPSHOT_COPY", Snapshot.COPY),
    ("ZERO_SNAPSHOT_LAZY", Snapshot.LAZY),
    ("ZERO_ROUNDING_NEAREST", Rounding.NEAREST),
    ("ZERO_ROUNDING_STOCHASTIC", Rounding.STOCHASTIC),
    ("ZERO_UNFILLED_ZERO", Unfilled.ZERO),
    ("ZERO_UNFILLED_UNTOUCHED", Unfilled.UNTOUCHED),
    ("ZERO_MASTER_F32", Master.F32),
    ("ZERO_MASTER_NONE", Master.NONE),
    ("ZERO_MASTER_REMAINDER", Master.REMAINDER),
    ("ZERO_DIVISOR_RANKS", Divisor.RANKS),
    ("ZERO_DIVISOR_ONE", Divisor.ONE),
    ("ZERO_DIVISOR_WEIGHTS", Divisor.WEIGHTS),
    ("ZERO_NONFINITE_SKIP", Nonfinite.SKIP),
    ("ZERO_NONFINITE_PROPAGATE", Nonfinite.PROPAGATE),
    ("ZERO_CODE_NONE", Code.NONE),
    ("ZERO_CODE_F8", Code.F8),
    ("ZERO_CODE_I8", Code.I8),
    ("ZERO_CODE_I4", Code.I4),
    ("ZERO_CODE_TOP", Code.TOP),
    ("ZERO_CODE_LOW_RANK", Code.LOW_RANK),
    ("ZERO_CODE_SIGN", Code.SIGN),
    ("ZERO_RESIDUAL_NONE", Residual.NONE),
    ("ZERO_RESIDUAL_F32", Residual.F32),
    ("ZERO_NEIGHBOURS_NONE", Neighbours.NONE),
    ("ZERO_NEIGHBOURS_RING", Neighbours.RING),
    ("ZERO_TIER_HOST", Tier.HOST),
    ("ZERO_TIER_DEVICE", Tier.DEVICE),
    ("ZERO_REDUCE_SUM", Reduce.SUM),
    ("ZERO_REDUCE_AVG", Reduce.AVG),
    ("ZERO_REDUCE_MIN", Reduce.MIN),
    ("ZERO_REDUCE_MAX", Reduce.MAX),
    ("ZERO_REDUCE_PROD", Reduce.PROD),
    ("ZERO_OPERATION_BARRIER", Operation.BARRIER),
    ("ZERO_OPERATION_BROADCAST", Operation.BROADCAST),
    ("ZERO_OPERATION_ALL_REDUCE", Operation.ALL_REDUCE),
    ("ZERO_OPERATION_REDUCE_SCATTER", Operation.REDUCE_SCATTER),
    ("ZERO_OPERATION_ALL_GATHER", Operation.ALL_GATHER),
    ("ZERO_OPERATION_REDUCE", Operation.REDUCE),
    ("ZERO_OPERATION_GATHER", Operation.GATHER),
    ("ZERO_OPERATION_SCATTER", Operation.SCATTER),
    ("ZERO_OPERATION_ALL_TO_ALL", Operation.ALL_TO_ALL),
    ("ZERO_OPERATION_SEND", Operation.SEND),
    ("ZERO_OPERATION_RECV", Operation.RECV),
    ("ZERO_SLOT_PARAM", Slot.PARAM),
    ("ZERO_SLOT_GRAD", Slot.GRAD),
    ("ZERO_SLOT_MASTER", Slot.MASTER),
    ("ZERO_SLOT_AVERAGE", Slot.AVERAGE),
    ("ZERO_SLOT_PARAM_SCALE", Slot.PARAM_SCALE),
    ("ZERO_SLOT_ANCHOR", Slot.ANCHOR),
    ("ZERO_SLOT_UPDATE_COUNT", Slot.UPDATE_COUNT),
    ("ZERO_SLOT_FIRST_MOMENT", Slot.FIRST_MOMENT),
    ("ZERO_SLOT_SECOND_MOMENT", Slot.SECOND_MOMENT),
    ("ZERO_SLOT_OUTER_MOMENT", Slot.OUTER_MOMENT),
    ("ZERO_SLOT_FIRST_SCALE", Slot.FIRST_SCALE),
    ("ZERO_SLOT_SECOND_SCALE", Slot.SECOND_SCALE),
    ("ZERO_SLOT_CUSTOM", Slot.CUSTOM),
    ("ZERO_SOURCE_LOCAL", Source.LOCAL),
    ("ZERO_SOURCE_ROOT", Source.ROOT),
    ("ZERO_SOURCE_SHARDS", Source.SHARDS),
    ("ZERO_INITIALISER_CONSTANT", Initialiser.CONSTANT),
    ("ZERO_INITIALISER_UNIFORM", Initialiser.UNIFORM),
    ("ZERO_INITIALISER_NORMAL", Initialiser.NORMAL),
    ("ZERO_SYNC_NONE", Sync.NONE),
    ("ZERO_SYNC_AVERAGE", Sync.AVERAGE),
    ("ZERO_SYNC_BROADCAST", Sync.BROADCAST),
    ("ZERO_FINDING_NONE", Finding.NONE),
    ("ZERO_FINDING_SHARD", Finding.SHARD),
    ("ZERO_FINDING_REPLICAS", Finding.REPLICAS),
    ("ZERO_MICRO_STEP_LAST", MicroStep.LAST),
    ("ZERO_MICRO_STEP_LOCAL", MicroStep.LOCAL),
    ("ZERO_MICRO_STEP_REDUCE", MicroStep.REDUCE),
    ("ZERO_SCOPE_ONE", Scope.ONE),
    ("ZERO_SCOPE_EACH", Scope.EACH),
    ("ZERO_PART_ALL", Part.ALL),
    ("ZERO_PART_PARAMS", Part.PARAMS),
    ("ZERO_EXPORT_AS_KEPT", Export.AS_KEPT),
    ("ZERO_TEXT_PLAIN", TextForm.PLAIN),
    ("ZERO_TEXT_JSON", TextForm.JSON),
    ("ZERO_MEMORY_TOTAL", Memory.TOTAL),
    ("ZERO_MEMORY_PARAM", Memory.PARAM),
    ("ZERO_MEMORY_GRAD", Memory.GRAD),
    ("ZERO_MEMORY_STATE", Memory.STATE),
    ("ZERO_MEMORY_GRAD_POOL", Memory.GRAD_POOL),
    ("ZERO_MEMORY_PARAM_POOL", Memory.PARAM_POOL),
    ("ZERO_MEMORY_STAGING", Memory.STAGING),
    ("ZERO_MEMORY_BUFFER", Memory.BUFFER),
    ("ZERO_MEMORY_ACCUMULATED", Memory.ACCUMULATED),
    ("ZERO_MEMORY_MODULE_BUFFER", Memory.MODULE_BUFFER),
    ("ZERO_MEMORY_WORKSPACE", Memory.WORKSPACE),
    ("ZERO_FEATURE_LOCAL", Feature.LOCAL),
    ("ZERO_FEATURE_MPI", Feature.MPI),
    ("ZERO_FEATURE_CUDA", Feature.CUDA),
    ("ZERO_FEATURE_NCCL", Feature.NCCL),
    ("ZERO_MPI_WORLD", MPI_WORLD),
    ("ZERO_VERSION_MAJOR", VERSION_MAJOR),
    ("ZERO_VERSION_MINOR", VERSION_MINOR),
    ("ZERO_VERSION_PATCH", VERSION_PATCH),
    ("ZERO_ABI_MAJOR", ABI_MAJOR),
    ("ZERO_ABI_MINOR", ABI_MINOR),
)


# Every struct by its name in C.
STRUCTS = (
    ("zero_key_bounds", KeyBounds),
    ("zero_step_result", StepResult),
    ("zero_verify_result", VerifyResult),
    ("zero_checkpoint_result", CheckpointResult),
    ("zero_server_result", ServerResult),
    ("zero_memory_stats", MemoryStats),
    ("zero_traffic_stats", TrafficStats),
    ("zero_step_stats", StepStats),
)
