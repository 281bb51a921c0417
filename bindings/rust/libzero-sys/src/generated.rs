// Written by bindings/gen/generate.py from bindings/zero.i. Do not edit.

use core::ffi::c_void;
use std::os::raw::c_char;

/// An opaque handle.
#[repr(C)]
pub struct zero_config {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_request {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_group {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_buffer {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_optimizer {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_checkpoint {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_save {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

/// An opaque handle.
#[repr(C)]
pub struct zero_server {
    _opaque: [u8; 0],
    _not_send: core::marker::PhantomData<*mut u8>,
}

pub type zero_alloc_fn = Option<unsafe extern "C" fn(u64, u64, *mut c_void) -> *mut c_void>;

pub type zero_free_fn = Option<unsafe extern "C" fn(*mut c_void, u64, *mut c_void)>;

pub type zero_shared_fn = Option<unsafe extern "C" fn(i64, *mut c_void)>;

// enum zero_status
pub const ZERO_OK: i32 = 0;
pub const ZERO_E_INVALID_ARGUMENT: i32 = -100;
pub const ZERO_E_BAD_HANDLE: i32 = -101;
pub const ZERO_E_UNSUPPORTED: i32 = -102;
pub const ZERO_E_STATE: i32 = -103;
pub const ZERO_E_OUT_OF_MEMORY: i32 = -104;
pub const ZERO_E_BUSY: i32 = -105;
pub const ZERO_E_MODULE: i32 = -106;
pub const ZERO_E_RENDEZVOUS: i32 = -107;
pub const ZERO_E_SYSTEM: i32 = -108;
pub const ZERO_E_LAUNCHER: i32 = -109;
pub const ZERO_E_DEVICE: i32 = -110;
pub const ZERO_E_CHECKPOINT: i32 = -111;
pub const ZERO_E_NOT_FOUND: i32 = -112;
pub const ZERO_E_REPLICAS_DIFFER: i32 = -200;
pub const ZERO_E_POOL_LIMIT: i32 = -201;
pub const ZERO_E_CORRUPT: i32 = -202;
pub const ZERO_E_DEVICE_FAILED: i32 = -203;
pub const ZERO_E_TIMEOUT: i32 = -300;
pub const ZERO_E_PEER_LOST: i32 = -301;
pub const ZERO_E_PEER_LEFT: i32 = -302;
pub const ZERO_E_PEER_FAILED: i32 = -303;
pub const ZERO_E_MISMATCH: i32 = -304;
pub const ZERO_E_ABORTED: i32 = -305;
pub const ZERO_E_TRANSPORT: i32 = -306;
pub const ZERO_E_FORKED: i32 = -400;
pub const ZERO_E_INTERNAL: i32 = -401;

// enum zero_dtype
pub const ZERO_DTYPE_F32: i32 = 1;
pub const ZERO_DTYPE_F64: i32 = 2;
pub const ZERO_DTYPE_F16: i32 = 3;
pub const ZERO_DTYPE_BF16: i32 = 4;
pub const ZERO_DTYPE_I32: i32 = 20;
pub const ZERO_DTYPE_I64: i32 = 21;
pub const ZERO_DTYPE_U8: i32 = 40;
pub const ZERO_DTYPE_U16: i32 = 41;
pub const ZERO_DTYPE_F8_E4M3: i32 = 50;
pub const ZERO_DTYPE_F8_UE5M3: i32 = 51;

// enum zero_key
pub const ZERO_KEY_DEADLINE_MS: i32 = 100;
pub const ZERO_KEY_RENDEZVOUS_MS: i32 = 101;
pub const ZERO_KEY_THREADS: i32 = 102;
pub const ZERO_KEY_STAGING_BYTES: i32 = 103;
pub const ZERO_KEY_MPI_MODULE: i32 = 104;
pub const ZERO_KEY_MPI_SHARED: i32 = 105;
pub const ZERO_KEY_NCCL: i32 = 106;
pub const ZERO_KEY_NCCL_MODULE: i32 = 107;
pub const ZERO_KEY_RENDEZVOUS_PORT: i32 = 108;
pub const ZERO_KEY_RENDEZVOUS_HOST: i32 = 109;
pub const ZERO_KEY_SHARD_WEIGHTS: i32 = 200;
pub const ZERO_KEY_STAGE: i32 = 300;
pub const ZERO_KEY_ALGORITHM: i32 = 301;
pub const ZERO_KEY_BUCKET_BYTES: i32 = 302;
pub const ZERO_KEY_DIVISOR: i32 = 303;
pub const ZERO_KEY_NONFINITE: i32 = 304;
pub const ZERO_KEY_GRAD_NORM: i32 = 305;
pub const ZERO_KEY_OVERLAP: i32 = 306;
pub const ZERO_KEY_POOL_LIMIT: i32 = 307;
pub const ZERO_KEY_CUSTOM_SLOTS: i32 = 308;
pub const ZERO_KEY_CLIP_NORM: i32 = 309;
pub const ZERO_KEY_CLIP_VALUE: i32 = 310;
pub const ZERO_KEY_LOSS_SCALE: i32 = 311;
pub const ZERO_KEY_LOSS_SCALE_DYNAMIC: i32 = 312;
pub const ZERO_KEY_LOSS_SCALE_WINDOW: i32 = 313;
pub const ZERO_KEY_LOSS_SCALE_HYSTERESIS: i32 = 314;
pub const ZERO_KEY_LOSS_SCALE_BACKOFF: i32 = 315;
pub const ZERO_KEY_LOSS_SCALE_GROWTH: i32 = 316;
pub const ZERO_KEY_LOSS_SCALE_MIN: i32 = 317;
pub const ZERO_KEY_LOSS_SCALE_MAX: i32 = 318;
pub const ZERO_KEY_ROUNDING: i32 = 319;
pub const ZERO_KEY_SEED: i32 = 320;
pub const ZERO_KEY_UNFILLED: i32 = 321;
pub const ZERO_KEY_ACCUMULATE_DTYPE: i32 = 322;
pub const ZERO_KEY_AVERAGE: i32 = 323;
pub const ZERO_KEY_GATHER_BELOW: i32 = 324;
pub const ZERO_KEY_PREFETCH_BYTES: i32 = 325;
pub const ZERO_KEY_VERIFY_EVERY: i32 = 326;
pub const ZERO_KEY_MEMORY_LIMIT: i32 = 327;
pub const ZERO_KEY_TRACE_EVENTS: i32 = 328;
pub const ZERO_KEY_ONE_COPY: i32 = 329;
pub const ZERO_KEY_DEVICE: i32 = 330;
pub const ZERO_KEY_CUDA_MODULE: i32 = 331;
pub const ZERO_KEY_TIER: i32 = 332;
pub const ZERO_KEY_REPLICA_RANKS: i32 = 333;
pub const ZERO_KEY_SYNC_PERIOD: i32 = 334;
pub const ZERO_KEY_SYNC_AFTER: i32 = 335;
pub const ZERO_KEY_SYNC_FRAGMENTS: i32 = 336;
pub const ZERO_KEY_SYNC_DELAY: i32 = 337;
pub const ZERO_KEY_CODE_RANK: i32 = 338;
pub const ZERO_KEY_GRAD_CODE: i32 = 339;
pub const ZERO_KEY_GATHER_CODE: i32 = 340;
pub const ZERO_KEY_SYNC_CODE: i32 = 341;
pub const ZERO_KEY_CODE_TOP: i32 = 342;
pub const ZERO_KEY_CODE_AFTER: i32 = 343;
pub const ZERO_KEY_RESIDUAL: i32 = 344;
pub const ZERO_KEY_FLUSH_PERIOD: i32 = 345;
pub const ZERO_KEY_PARAM_RANKS: i32 = 346;
pub const ZERO_KEY_NEIGHBOURS: i32 = 347;
pub const ZERO_KEY_GRAD_DELAY: i32 = 348;
pub const ZERO_KEY_STRATEGY: i32 = 349;
pub const ZERO_KEY_SET: i32 = 350;
pub const ZERO_KEY_FROZEN: i32 = 351;
pub const ZERO_KEY_GRAD_DTYPE: i32 = 352;
pub const ZERO_KEY_MASTER: i32 = 353;
pub const ZERO_KEY_FIRST_MOMENT_DTYPE: i32 = 354;
pub const ZERO_KEY_SECOND_MOMENT_DTYPE: i32 = 355;
pub const ZERO_KEY_REPLICATED: i32 = 356;
pub const ZERO_KEY_TIED_TO: i32 = 357;
pub const ZERO_KEY_PARAM_DTYPE: i32 = 358;
pub const ZERO_KEY_ROWS: i32 = 359;
pub const ZERO_KEY_LR: i32 = 400;
pub const ZERO_KEY_MOMENTUM: i32 = 401;
pub const ZERO_KEY_DAMPENING: i32 = 402;
pub const ZERO_KEY_NESTEROV: i32 = 403;
pub const ZERO_KEY_BETA1: i32 = 404;
pub const ZERO_KEY_BETA2: i32 = 405;
pub const ZERO_KEY_EPSILON: i32 = 406;
pub const ZERO_KEY_WEIGHT_DECAY: i32 = 407;
pub const ZERO_KEY_LR_DECAY: i32 = 408;
pub const ZERO_KEY_INITIAL_ACCUMULATOR: i32 = 409;
pub const ZERO_KEY_NEWTON_SCHULZ_STEPS: i32 = 410;
pub const ZERO_KEY_AVERAGE_DECAY: i32 = 411;
pub const ZERO_KEY_OUTER_LR: i32 = 412;
pub const ZERO_KEY_OUTER_MOMENTUM: i32 = 413;
pub const ZERO_KEY_SYNC_MIX: i32 = 414;
pub const ZERO_KEY_CODE_MOMENTUM: i32 = 415;
pub const ZERO_KEY_CODE_FREEZE: i32 = 416;
pub const ZERO_KEY_STEP_COUNT: i32 = 500;
pub const ZERO_KEY_SKIPPED_COUNT: i32 = 501;
pub const ZERO_KEY_GROWTH_COUNT: i32 = 502;
pub const ZERO_KEY_OVERFLOW_COUNT: i32 = 503;
pub const ZERO_KEY_CHECKPOINT_STAGING_BYTES: i32 = 600;
pub const ZERO_KEY_CHECKPOINT_KEEP: i32 = 601;
pub const ZERO_KEY_CHECKPOINT_DIRECT: i32 = 602;
pub const ZERO_KEY_CHECKPOINT_SYNC: i32 = 603;
pub const ZERO_KEY_CHECKPOINT_SNAPSHOT: i32 = 605;
pub const ZERO_KEY_CHECKPOINT_FILE_BYTES: i32 = 606;
pub const ZERO_KEY_CHECKPOINT_PROGRESS_MS: i32 = 607;
pub const ZERO_KEY_CHECKPOINT_CONVERT: i32 = 608;
pub const ZERO_KEY_CHECKPOINT_MISSING: i32 = 609;
pub const ZERO_KEY_CHECKPOINT_EXTRA: i32 = 610;
pub const ZERO_KEY_CHECKPOINT_MODEL_FILES: i32 = 611;
pub const ZERO_KEY_SERVER_RANKS: i32 = 700;
pub const ZERO_KEY_SERVER_ORDER: i32 = 701;
pub const ZERO_KEY_SERVER_STALENESS: i32 = 702;
pub const ZERO_KEY_SERVER_RULE: i32 = 703;
pub const ZERO_KEY_SERVER_RATE: i32 = 704;
pub const ZERO_KEY_SERVER_PERIOD: i32 = 705;

// enum zero_server_order
pub const ZERO_SERVER_ORDER_ROUND_ROBIN: i32 = 0;
pub const ZERO_SERVER_ORDER_ARRIVAL: i32 = 1;

// enum zero_server_rule
pub const ZERO_SERVER_RULE_UPDATE: i32 = 0;
pub const ZERO_SERVER_RULE_AVERAGE: i32 = 1;
pub const ZERO_SERVER_RULE_MEAN: i32 = 2;

// enum zero_snapshot
pub const ZERO_SNAPSHOT_COPY: i32 = 0;
pub const ZERO_SNAPSHOT_LAZY: i32 = 1;

// enum zero_rounding
pub const ZERO_ROUNDING_NEAREST: i32 = 0;
pub const ZERO_ROUNDING_STOCHASTIC: i32 = 1;

// enum zero_unfilled
pub const ZERO_UNFILLED_ZERO: i32 = 0;
pub const ZERO_UNFILLED_UNTOUCHED: i32 = 1;

// enum zero_master
pub const ZERO_MASTER_F32: i32 = 0;
pub const ZERO_MASTER_NONE: i32 = 1;
pub const ZERO_MASTER_REMAINDER: i32 = 2;

// enum zero_divisor
pub const ZERO_DIVISOR_RANKS: i32 = 0;
pub const ZERO_DIVISOR_ONE: i32 = 1;
pub const ZERO_DIVISOR_WEIGHTS: i32 = 2;

// enum zero_nonfinite
pub const ZERO_NONFINITE_SKIP: i32 = 0;
pub const ZERO_NONFINITE_PROPAGATE: i32 = 1;

// enum zero_code
pub const ZERO_CODE_NONE: i32 = 0;
pub const ZERO_CODE_F8: i32 = 1;
pub const ZERO_CODE_I8: i32 = 2;
pub const ZERO_CODE_I4: i32 = 3;
pub const ZERO_CODE_TOP: i32 = 4;
pub const ZERO_CODE_LOW_RANK: i32 = 5;
pub const ZERO_CODE_SIGN: i32 = 6;

// enum zero_residual
pub const ZERO_RESIDUAL_NONE: i32 = 0;
pub const ZERO_RESIDUAL_F32: i32 = 1;

// enum zero_neighbours
pub const ZERO_NEIGHBOURS_NONE: i32 = 0;
pub const ZERO_NEIGHBOURS_RING: i32 = 1;

// enum zero_tier
pub const ZERO_TIER_HOST: i32 = 0;
pub const ZERO_TIER_DEVICE: i32 = 1;

// enum zero_reduce
pub const ZERO_REDUCE_SUM: i32 = 1;
pub const ZERO_REDUCE_AVG: i32 = 2;
pub const ZERO_REDUCE_MIN: i32 = 3;
pub const ZERO_REDUCE_MAX: i32 = 4;
pub const ZERO_REDUCE_PROD: i32 = 5;

// enum zero_operation
pub const ZERO_OPERATION_BARRIER: i32 = 1;
pub const ZERO_OPERATION_BROADCAST: i32 = 2;
pub const ZERO_OPERATION_ALL_REDUCE: i32 = 3;
pub const ZERO_OPERATION_REDUCE_SCATTER: i32 = 4;
pub const ZERO_OPERATION_ALL_GATHER: i32 = 5;
pub const ZERO_OPERATION_REDUCE: i32 = 6;
pub const ZERO_OPERATION_GATHER: i32 = 7;
pub const ZERO_OPERATION_SCATTER: i32 = 8;
pub const ZERO_OPERATION_ALL_TO_ALL: i32 = 9;
pub const ZERO_OPERATION_SEND: i32 = 10;
pub const ZERO_OPERATION_RECV: i32 = 11;

// enum zero_slot
pub const ZERO_SLOT_PARAM: i32 = 1;
pub const ZERO_SLOT_GRAD: i32 = 2;
pub const ZERO_SLOT_MASTER: i32 = 3;
pub const ZERO_SLOT_AVERAGE: i32 = 4;
pub const ZERO_SLOT_PARAM_SCALE: i32 = 5;
pub const ZERO_SLOT_ANCHOR: i32 = 6;
pub const ZERO_SLOT_UPDATE_COUNT: i32 = 8;
pub const ZERO_SLOT_FIRST_MOMENT: i32 = 10;
pub const ZERO_SLOT_SECOND_MOMENT: i32 = 11;
pub const ZERO_SLOT_OUTER_MOMENT: i32 = 12;
pub const ZERO_SLOT_FIRST_SCALE: i32 = 14;
pub const ZERO_SLOT_SECOND_SCALE: i32 = 15;
pub const ZERO_SLOT_CUSTOM: i32 = 20;

// enum zero_source
pub const ZERO_SOURCE_LOCAL: i32 = 0;
pub const ZERO_SOURCE_ROOT: i32 = 1;
pub const ZERO_SOURCE_SHARDS: i32 = 2;

// enum zero_initialiser
pub const ZERO_INITIALISER_CONSTANT: i32 = 0;
pub const ZERO_INITIALISER_UNIFORM: i32 = 1;
pub const ZERO_INITIALISER_NORMAL: i32 = 2;

// enum zero_sync
pub const ZERO_SYNC_NONE: i32 = 0;
pub const ZERO_SYNC_AVERAGE: i32 = 1;
pub const ZERO_SYNC_BROADCAST: i32 = 2;

// enum zero_finding
pub const ZERO_FINDING_NONE: i32 = 0;
pub const ZERO_FINDING_SHARD: i32 = 1;
pub const ZERO_FINDING_REPLICAS: i32 = 2;

// enum zero_micro_step
pub const ZERO_MICRO_STEP_LAST: i32 = 0;
pub const ZERO_MICRO_STEP_LOCAL: i32 = 1;
pub const ZERO_MICRO_STEP_REDUCE: i32 = 2;

// enum zero_scope
pub const ZERO_SCOPE_ONE: i32 = 0;
pub const ZERO_SCOPE_EACH: i32 = 1;

// enum zero_part
pub const ZERO_PART_ALL: i32 = 0;
pub const ZERO_PART_PARAMS: i32 = 1;

// enum zero_export
pub const ZERO_EXPORT_AS_KEPT: i32 = 0;

// enum zero_text_form
pub const ZERO_TEXT_PLAIN: i32 = 0;
pub const ZERO_TEXT_JSON: i32 = 1;

// enum zero_memory
pub const ZERO_MEMORY_TOTAL: i32 = 0;
pub const ZERO_MEMORY_PARAM: i32 = 1;
pub const ZERO_MEMORY_GRAD: i32 = 2;
pub const ZERO_MEMORY_STATE: i32 = 3;
pub const ZERO_MEMORY_GRAD_POOL: i32 = 4;
pub const ZERO_MEMORY_PARAM_POOL: i32 = 5;
pub const ZERO_MEMORY_STAGING: i32 = 6;
pub const ZERO_MEMORY_BUFFER: i32 = 7;
pub const ZERO_MEMORY_ACCUMULATED: i32 = 8;
pub const ZERO_MEMORY_MODULE_BUFFER: i32 = 9;
pub const ZERO_MEMORY_WORKSPACE: i32 = 10;

// enum zero_feature
pub const ZERO_FEATURE_LOCAL: i32 = 1;
pub const ZERO_FEATURE_MPI: i32 = 2;
pub const ZERO_FEATURE_CUDA: i32 = 3;
pub const ZERO_FEATURE_NCCL: i32 = 4;

pub const ZERO_MPI_WORLD: i64 = -1;
pub const ZERO_VERSION_MAJOR: i64 = 0;
pub const ZERO_VERSION_MINOR: i64 = 1;
pub const ZERO_VERSION_PATCH: i64 = 0;
pub const ZERO_ABI_MAJOR: i64 = 0;
pub const ZERO_ABI_MINOR: i64 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_key_bounds {
    pub struct_size: u64,
    pub type_: i64,
    pub min_i64: i64,
    pub max_i64: i64,
    pub default_i64: i64,
    pub min_f64: f64,
    pub max_f64: f64,
    pub default_f64: f64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_step_result {
    pub struct_size: u64,
    pub step: i64,
    pub skipped: i64,
    pub skipped_total: i64,
    pub unfilled_count: i64,
    pub grad_norm: f64,
    pub loss_scale: f64,
    pub stop_reason: i64,
    pub synced: i64,
    pub spread: f64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_verify_result {
    pub struct_size: u64,
    pub found: i64,
    pub chunk_count: i64,
    pub rank: i64,
    pub other_rank: i64,
    pub param: i64,
    pub slot: i64,
    pub offset: i64,
    pub count: i64,
    pub replica_nbytes: i64,
    pub shard_nbytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_checkpoint_result {
    pub struct_size: u64,
    pub step: i64,
    pub nbytes: i64,
    pub file_count: i64,
    pub write_ns: i64,
    pub sync_ns: i64,
    pub commit_ns: i64,
    pub direct: i64,
    pub missing: i64,
    pub extra: i64,
    pub converted: i64,
    pub fallback: i64,
    pub snapshot_nbytes: i64,
    pub stall_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_server_result {
    pub struct_size: u64,
    pub push_count: i64,
    pub pull_count: i64,
    pub skipped_count: i64,
    pub waited_count: i64,
    pub left_count: i64,
    pub lost_count: i64,
    pub received_nbytes: i64,
    pub sent_nbytes: i64,
    pub greatest_age: i64,
    pub age_0_count: i64,
    pub age_1_count: i64,
    pub age_2_count: i64,
    pub age_4_count: i64,
    pub age_8_count: i64,
    pub age_16_count: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_memory_stats {
    pub struct_size: u64,
    pub now_nbytes: i64,
    pub peak_nbytes: i64,
    pub formula_nbytes: i64,
    pub constant_nbytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_traffic_stats {
    pub struct_size: u64,
    pub call_count: i64,
    pub sent_elements: i64,
    pub sent_nbytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct zero_step_stats {
    pub struct_size: u64,
    pub step_count: i64,
    pub reduce_ns: i64,
    pub apply_ns: i64,
    pub gather_ns: i64,
    pub stalled_nbytes: i64,
    pub pool_grow_count: i64,
    pub overlap_active: i64,
}

extern "C" {
    /// See `zero/status.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_last_error_copy(out: *mut c_char, out_nbytes: i64) -> i32;

    /// See `zero/status.h`.
    pub fn zero_status_name(status: i32) -> *const c_char;

    /// See `zero/dtype.h`.
    pub fn zero_dtype_nbytes(dtype: i32, out_nbytes: *mut i64) -> i32;

    /// See `zero/config.h`; what it makes is the caller's.
    pub fn zero_config_create(out: *mut *mut zero_config) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_set_i64(config: *mut zero_config, key: i32, value: i64) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_set_f64(config: *mut zero_config, key: i32, value: f64) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_set_str(config: *mut zero_config, key: i32, value: *const c_char) -> i32;

    /// See `zero/config.h`.
    pub fn zero_key_bounds_init(out: *mut zero_key_bounds, struct_size: u64) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_bounds(key: i32, out: *mut zero_key_bounds) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_set_allocator(config: *mut zero_config, alloc: zero_alloc_fn, free_fn: zero_free_fn, shared: zero_shared_fn, user: *mut c_void) -> i32;

    /// See `zero/config.h`.
    pub fn zero_config_release(config: *mut zero_config);

    /// See `zero/request.h`.
    pub fn zero_request_test(request: *mut zero_request, out_done: *mut i64) -> i32;

    /// See `zero/request.h`.
    pub fn zero_request_wait(request: *mut zero_request) -> i32;

    /// See `zero/request.h`; what it makes is the caller's.
    pub fn zero_request_group(request: *mut zero_request, out: *mut *mut zero_group) -> i32;

    /// See `zero/request.h`; what it makes is the caller's.
    pub fn zero_request_buffer(request: *mut zero_request, out: *mut *mut zero_buffer) -> i32;

    /// See `zero/request.h`.
    pub fn zero_request_release(request: *mut zero_request);

    /// See `zero/group.h`; waits for other ranks; what it makes is the caller's.
    pub fn zero_group_create_local(name: *const c_char, rank: i64, size: i64, config: *const zero_config, out: *mut *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_create_local_async(name: *const c_char, rank: i64, size: i64, config: *const zero_config, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; waits for other ranks; what it makes is the caller's.
    pub fn zero_group_create_mpi(comm: i64, config: *const zero_config, out: *mut *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_create_mpi_async(comm: i64, config: *const zero_config, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; waits for other ranks; what it makes is the caller's.
    pub fn zero_group_create_nccl(id: *const c_char, rank: i64, size: i64, config: *const zero_config, out: *mut *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_create_nccl_async(id: *const c_char, rank: i64, size: i64, config: *const zero_config, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_group_unique_id(config: *const zero_config, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/group.h`; waits for other ranks; what it makes is the caller's.
    pub fn zero_group_create_env(config: *const zero_config, out: *mut *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_create_env_async(config: *const zero_config, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_group_launcher(out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/group.h`; waits for other ranks; what it makes is the caller's; keeps `group` alive.
    pub fn zero_group_split(group: *mut zero_group, color: i64, key: i64, out: *mut *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_split_async(group: *mut zero_group, color: i64, key: i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_rank(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_size(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_local_rank(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_local_size(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_host_count(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_share(group: *const zero_group, count: i64, rank: i64, out_offset: *mut i64, out_count: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_status(group: *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_abort(group: *mut zero_group, reason: *const c_char) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_set_deadline(group: *mut zero_group, deadline_ms: i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_quiet(group: *const zero_group, out: *mut i64) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_all_reduce(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_all_reduce_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_reduce_scatter(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_reduce_scatter_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_all_gather(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_all_gather_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; writes `data[..count]`; waits for other ranks.
    pub fn zero_group_broadcast(group: *mut zero_group, data: *mut c_void, count: i64, dtype: i32, root: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; writes `data[..count]`.
    pub fn zero_group_broadcast_async(group: *mut zero_group, data: *mut c_void, count: i64, dtype: i32, root: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_reduce(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, root: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_reduce_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, op: i32, root: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_gather(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, total: i64, dtype: i32, root: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_gather_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, total: i64, dtype: i32, root: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_scatter(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, total: i64, dtype: i32, root: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_scatter_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, total: i64, dtype: i32, root: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_all_to_all(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; writes `recv[..recv_count]`.
    pub fn zero_group_all_to_all_async(group: *mut zero_group, send: *const c_void, send_count: i64, recv: *mut c_void, recv_count: i64, dtype: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`; waits for other ranks.
    pub fn zero_group_send(group: *mut zero_group, send: *const c_void, send_count: i64, dtype: i32, peer: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; reads `send[..send_count]`.
    pub fn zero_group_send_async(group: *mut zero_group, send: *const c_void, send_count: i64, dtype: i32, peer: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; writes `recv[..recv_count]`; waits for other ranks.
    pub fn zero_group_recv(group: *mut zero_group, recv: *mut c_void, recv_count: i64, dtype: i32, peer: i64, stream: *mut c_void) -> i32;

    /// See `zero/group.h`; writes `recv[..recv_count]`.
    pub fn zero_group_recv_async(group: *mut zero_group, recv: *mut c_void, recv_count: i64, dtype: i32, peer: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; waits for other ranks.
    pub fn zero_group_barrier(group: *mut zero_group) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_barrier_async(group: *mut zero_group, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`; waits for other ranks.
    pub fn zero_group_balance(group: *mut zero_group, seconds: f64, items: i64, total: i64, unit: i64, out: *mut i64) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_balance_async(group: *mut zero_group, seconds: f64, items: i64, total: i64, unit: i64, out_share: *mut i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/group.h`.
    pub fn zero_group_release(group: *mut zero_group);

    /// See `zero/buffer.h`; waits for other ranks; what it makes is the caller's; keeps `group` alive.
    pub fn zero_buffer_create(group: *mut zero_group, config: *const zero_config, dtype: i32, count: i64, out: *mut *mut zero_buffer) -> i32;

    /// See `zero/buffer.h`.
    pub fn zero_buffer_create_async(group: *mut zero_group, config: *const zero_config, dtype: i32, count: i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/buffer.h`.
    pub fn zero_buffer_shard(buffer: *const zero_buffer, out_data: *mut *mut c_void, out_offset: *mut i64, out_count: *mut i64) -> i32;

    /// See `zero/buffer.h`; waits for other ranks.
    pub fn zero_buffer_whole_acquire(buffer: *mut zero_buffer, stream: *mut c_void, out_data: *mut *mut c_void) -> i32;

    /// See `zero/buffer.h`.
    pub fn zero_buffer_whole_acquire_async(buffer: *mut zero_buffer, stream: *mut c_void, out_data: *mut *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/buffer.h`.
    pub fn zero_buffer_whole_release(buffer: *mut zero_buffer) -> i32;

    /// See `zero/buffer.h`; reads `data[..count]`; waits for other ranks.
    pub fn zero_buffer_reduce_scatter(buffer: *mut zero_buffer, data: *const c_void, count: i64, op: i32, stream: *mut c_void) -> i32;

    /// See `zero/buffer.h`; reads `data[..count]`.
    pub fn zero_buffer_reduce_scatter_async(buffer: *mut zero_buffer, data: *const c_void, count: i64, op: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/buffer.h`; writes `data[..count]`; waits for other ranks.
    pub fn zero_buffer_read(buffer: *mut zero_buffer, offset: i64, data: *mut c_void, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/buffer.h`; writes `data[..count]`.
    pub fn zero_buffer_read_async(buffer: *mut zero_buffer, offset: i64, data: *mut c_void, count: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/buffer.h`; reads `data[..count]`; waits for other ranks.
    pub fn zero_buffer_write(buffer: *mut zero_buffer, offset: i64, data: *const c_void, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/buffer.h`; reads `data[..count]`.
    pub fn zero_buffer_write_async(buffer: *mut zero_buffer, offset: i64, data: *const c_void, count: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/buffer.h`.
    pub fn zero_buffer_release(buffer: *mut zero_buffer);

    /// See `zero/optimizer.h`.
    pub fn zero_step_result_init(out: *mut zero_step_result, struct_size: u64) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_verify_result_init(out: *mut zero_verify_result, struct_size: u64) -> i32;

    /// See `zero/optimizer.h`; what it makes is the caller's; keeps `group` alive.
    pub fn zero_optimizer_create(group: *mut zero_group, config: *const zero_config, out: *mut *mut zero_optimizer) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_add_set(optimizer: *mut zero_optimizer, config: *const zero_config, out_set: *mut i64) -> i32;

    /// See `zero/optimizer.h`; keeps `group` alive.
    pub fn zero_optimizer_set_model_group(optimizer: *mut zero_optimizer, group: *mut zero_group) -> i32;

    /// See `zero/optimizer.h`; reads `shape[..ndim]`.
    pub fn zero_optimizer_add_param(optimizer: *mut zero_optimizer, config: *const zero_config, name: *const c_char, dtype: i32, shape: *const i64, ndim: i64, out_id: *mut i64) -> i32;

    /// See `zero/optimizer.h`; reads `ids[..count]`.
    pub fn zero_optimizer_set_order(optimizer: *mut zero_optimizer, ids: *const i64, count: i64) -> i32;

    /// See `zero/optimizer.h`; reads `shape[..ndim]`.
    pub fn zero_optimizer_add_module_buffer(optimizer: *mut zero_optimizer, name: *const c_char, dtype: i32, shape: *const i64, ndim: i64, rule: i32, out_id: *mut i64) -> i32;

    /// See `zero/optimizer.h`; reads `ids[..count]`.
    pub fn zero_optimizer_set_gather_order(optimizer: *mut zero_optimizer, ids: *const i64, count: i64) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_seal(optimizer: *mut zero_optimizer) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_seal_async(optimizer: *mut zero_optimizer, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_begin(optimizer: *mut zero_optimizer, source: i32) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_begin_async(optimizer: *mut zero_optimizer, source: i32, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_init_param(optimizer: *mut zero_optimizer, id: i64, initialiser: i32, a: f64, b: f64, seed: i64) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_module_buffer(optimizer: *mut zero_optimizer, id: i64, out_data: *mut *mut c_void, out_count: *mut i64) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_sync_module_buffers(optimizer: *mut zero_optimizer, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_sync_module_buffers_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; writes `dst[..dst_count]`; waits for other ranks.
    pub fn zero_optimizer_param_acquire(optimizer: *mut zero_optimizer, id: i64, dst: *mut c_void, dst_count: i64, stream: *mut c_void, out_data: *mut *mut c_void) -> i32;

    /// See `zero/optimizer.h`; writes `dst[..dst_count]`.
    pub fn zero_optimizer_param_acquire_async(optimizer: *mut zero_optimizer, id: i64, dst: *mut c_void, dst_count: i64, stream: *mut c_void, out_data: *mut *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_param_release(optimizer: *mut zero_optimizer, id: i64) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_grad_acquire(optimizer: *mut zero_optimizer, id: i64, stream: *mut c_void, out_data: *mut *mut c_void, out_accumulate: *mut i64) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_grad_ready(optimizer: *mut zero_optimizer, id: i64, grad: *const c_void, offset: i64, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_grad_ready_rows(optimizer: *mut zero_optimizer, id: i64, rows: *const i64, values: *const c_void, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`; reads `ids[..count]`.
    pub fn zero_optimizer_grads_ready(optimizer: *mut zero_optimizer, ids: *const i64, count: i64, grads: *mut *const c_void, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_set_weight(optimizer: *mut zero_optimizer, weight: f64) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_micro_step(optimizer: *mut zero_optimizer, kind: i32, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_micro_step_async(optimizer: *mut zero_optimizer, kind: i32, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_step(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_step_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_reduce(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_reduce_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_apply(optimizer: *mut zero_optimizer, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_apply_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_gather(optimizer: *mut zero_optimizer, stream: *mut c_void) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_gather_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_view_count(optimizer: *const zero_optimizer, out_count: *mut i64) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_view(optimizer: *mut zero_optimizer, index: i64, slot: i32, out_param: *mut i64, out_offset: *mut i64, out_count: *mut i64, out_data: *mut *mut c_void) -> i32;

    /// See `zero/optimizer.h`; waits for other ranks.
    pub fn zero_optimizer_verify(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_verify_result) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_verify_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_verify_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/optimizer.h`.
    pub fn zero_optimizer_release(optimizer: *mut zero_optimizer);

    /// See `zero/replicas.h`; waits for other ranks.
    pub fn zero_optimizer_sync(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result) -> i32;

    /// See `zero/replicas.h`.
    pub fn zero_optimizer_sync_async(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/stop.h`.
    pub fn zero_optimizer_request_stop(optimizer: *mut zero_optimizer, reason: i64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_set_f64(optimizer: *mut zero_optimizer, set: i64, key: i32, value: f64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_get_f64(optimizer: *const zero_optimizer, set: i64, key: i32, out: *mut f64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_set_i64(optimizer: *mut zero_optimizer, key: i32, value: i64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_get_i64(optimizer: *const zero_optimizer, key: i32, out: *mut i64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_slot_count(optimizer: *const zero_optimizer, id: i64, out_count: *mut i64) -> i32;

    /// See `zero/slots.h`.
    pub fn zero_optimizer_slot(optimizer: *const zero_optimizer, id: i64, index: i64, out_slot: *mut i64, out_dtype: *mut i64, out_count: *mut i64) -> i32;

    /// See `zero/slots.h`; writes `data[..count]`; waits for other ranks.
    pub fn zero_optimizer_read(optimizer: *mut zero_optimizer, id: i64, slot: i32, offset: i64, data: *mut c_void, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/slots.h`; writes `data[..count]`.
    pub fn zero_optimizer_read_async(optimizer: *mut zero_optimizer, id: i64, slot: i32, offset: i64, data: *mut c_void, count: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/slots.h`; reads `data[..count]`; waits for other ranks.
    pub fn zero_optimizer_write(optimizer: *mut zero_optimizer, id: i64, slot: i32, offset: i64, data: *const c_void, count: i64, stream: *mut c_void) -> i32;

    /// See `zero/slots.h`; reads `data[..count]`.
    pub fn zero_optimizer_write_async(optimizer: *mut zero_optimizer, id: i64, slot: i32, offset: i64, data: *const c_void, count: i64, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/graph.h`.
    pub fn zero_optimizer_result(optimizer: *mut zero_optimizer, stream: *mut c_void, out_result: *mut zero_step_result) -> i32;

    /// See `zero/graph.h`.
    pub fn zero_optimizer_refresh(optimizer: *mut zero_optimizer, stream: *mut c_void) -> i32;

    /// See `zero/graph.h`.
    pub fn zero_optimizer_loss_scale_address(optimizer: *mut zero_optimizer, stream: *mut c_void, out_address: *mut *mut c_void) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_result_init(out: *mut zero_checkpoint_result, struct_size: u64) -> i32;

    /// See `zero/checkpoint.h`; waits for other ranks.
    pub fn zero_optimizer_save(optimizer: *mut zero_optimizer, folder: *const c_char, stream: *mut c_void) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_optimizer_save_async(optimizer: *mut zero_optimizer, folder: *const c_char, stream: *mut c_void, out: *mut *mut zero_request) -> i32;

    /// See `zero/checkpoint.h`; waits for other ranks.
    pub fn zero_optimizer_resume(optimizer: *mut zero_optimizer, folder: *const c_char, stream: *mut c_void, out_found: *mut i64) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_optimizer_resume_async(optimizer: *mut zero_optimizer, folder: *const c_char, stream: *mut c_void, out_found: *mut i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/checkpoint.h`; what it makes is the caller's; keeps `group` alive.
    pub fn zero_checkpoint_create(group: *mut zero_group, config: *const zero_config, out: *mut *mut zero_checkpoint) -> i32;

    /// See `zero/checkpoint.h`; keeps `optimizer` alive.
    pub fn zero_checkpoint_add_optimizer(checkpoint: *mut zero_checkpoint, prefix: *const c_char, optimizer: *mut zero_optimizer) -> i32;

    /// See `zero/checkpoint.h`; keeps `buffer` alive.
    pub fn zero_checkpoint_add_buffer(checkpoint: *mut zero_checkpoint, name: *const c_char, buffer: *mut zero_buffer) -> i32;

    /// See `zero/checkpoint.h`; reads `shape[..ndim]`.
    pub fn zero_checkpoint_add_tensor(checkpoint: *mut zero_checkpoint, name: *const c_char, dtype: i32, shape: *const i64, ndim: i64, data: *mut c_void, scope: i32) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_set_text(checkpoint: *mut zero_checkpoint, key: *const c_char, text: *const c_char) -> i32;

    /// See `zero/checkpoint.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_checkpoint_get_text(checkpoint: *const zero_checkpoint, key: *const c_char, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_rename(checkpoint: *mut zero_checkpoint, in_file: *const c_char, here: *const c_char) -> i32;

    /// See `zero/checkpoint.h`; waits for other ranks.
    pub fn zero_checkpoint_save(checkpoint: *mut zero_checkpoint, folder: *const c_char, stream: *mut c_void, out_result: *mut zero_checkpoint_result) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_save_async(checkpoint: *mut zero_checkpoint, folder: *const c_char, stream: *mut c_void, out_result: *mut zero_checkpoint_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/checkpoint.h`; waits for other ranks.
    pub fn zero_checkpoint_load(checkpoint: *mut zero_checkpoint, folder: *const c_char, part: i32, stream: *mut c_void, out_result: *mut zero_checkpoint_result) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_load_async(checkpoint: *mut zero_checkpoint, folder: *const c_char, part: i32, stream: *mut c_void, out_result: *mut zero_checkpoint_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/checkpoint.h`; waits for other ranks.
    pub fn zero_checkpoint_export(checkpoint: *mut zero_checkpoint, path: *const c_char, dtype: i32, stream: *mut c_void, out_result: *mut zero_checkpoint_result) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_export_async(checkpoint: *mut zero_checkpoint, path: *const c_char, dtype: i32, stream: *mut c_void, out_result: *mut zero_checkpoint_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/checkpoint.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_checkpoint_skipped(checkpoint: *const zero_checkpoint, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/checkpoint.h`.
    pub fn zero_checkpoint_release(checkpoint: *mut zero_checkpoint);

    /// See `zero/save.h`; what it makes is the caller's.
    pub fn zero_save_open(path: *const c_char, out: *mut *mut zero_save) -> i32;

    /// See `zero/save.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_save_list(folder: *const c_char, form: i32, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/save.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_save_describe(save: *const zero_save, form: i32, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_verify(save: *mut zero_save) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_compare(save: *mut zero_save, other: *mut zero_save, out_count: *mut i64) -> i32;

    /// See `zero/save.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_save_differences(save: *const zero_save, form: i32, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_export(save: *mut zero_save, path: *const c_char) -> i32;

    /// See `zero/save.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_save_prunable(folder: *const c_char, keep: i64, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_remove(folder: *const c_char, name: *const c_char) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_progress(save: *const zero_save, out_done: *mut i64, out_total: *mut i64) -> i32;

    /// See `zero/save.h`.
    pub fn zero_save_release(save: *mut zero_save);

    /// See `zero/server.h`.
    pub fn zero_server_result_init(out: *mut zero_server_result, struct_size: u64) -> i32;

    /// See `zero/server.h`; what it makes is the caller's; keeps `group` alive.
    pub fn zero_server_create(group: *mut zero_group, config: *const zero_config, count: i64, out: *mut *mut zero_server) -> i32;

    /// See `zero/server.h`; waits for other ranks.
    pub fn zero_server_seal(server: *mut zero_server) -> i32;

    /// See `zero/server.h`.
    pub fn zero_server_seal_async(server: *mut zero_server, out: *mut *mut zero_request) -> i32;

    /// See `zero/server.h`.
    pub fn zero_server_shard(server: *const zero_server, out_data: *mut *mut c_void, out_offset: *mut i64, out_count: *mut i64) -> i32;

    /// See `zero/server.h`; reads `data[..count]`.
    pub fn zero_server_replay(server: *mut zero_server, data: *const c_void, count: i64) -> i32;

    /// See `zero/server.h`; writes `data[..count]`.
    pub fn zero_server_record(server: *const zero_server, data: *mut c_void, count: i64, out_count: *mut i64) -> i32;

    /// See `zero/server.h`; waits for other ranks.
    pub fn zero_server_run(server: *mut zero_server, out_result: *mut zero_server_result) -> i32;

    /// See `zero/server.h`.
    pub fn zero_server_run_async(server: *mut zero_server, out_result: *mut zero_server_result, out: *mut *mut zero_request) -> i32;

    /// See `zero/server.h`; reads `data[..count]`; waits for other ranks.
    pub fn zero_server_push(server: *mut zero_server, data: *const c_void, count: i64) -> i32;

    /// See `zero/server.h`; reads `data[..count]`.
    pub fn zero_server_push_async(server: *mut zero_server, data: *const c_void, count: i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/server.h`; writes `data[..count]`; waits for other ranks.
    pub fn zero_server_pull(server: *mut zero_server, data: *mut c_void, count: i64) -> i32;

    /// See `zero/server.h`; writes `data[..count]`.
    pub fn zero_server_pull_async(server: *mut zero_server, data: *mut c_void, count: i64, out: *mut *mut zero_request) -> i32;

    /// See `zero/server.h`; waits for other ranks.
    pub fn zero_server_leave(server: *mut zero_server) -> i32;

    /// See `zero/server.h`.
    pub fn zero_server_leave_async(server: *mut zero_server, out: *mut *mut zero_request) -> i32;

    /// See `zero/server.h`.
    pub fn zero_server_release(server: *mut zero_server);

    /// See `zero/stats.h`.
    pub fn zero_memory_stats_init(out: *mut zero_memory_stats, struct_size: u64) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_stats_optimizer_memory(optimizer: *const zero_optimizer, category: i32, out: *mut zero_memory_stats) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_stats_buffer_memory(buffer: *const zero_buffer, category: i32, out: *mut zero_memory_stats) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_traffic_stats_init(out: *mut zero_traffic_stats, struct_size: u64) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_stats_group_traffic(group: *const zero_group, operation: i32, out: *mut zero_traffic_stats) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_stats_optimizer_traffic(optimizer: *const zero_optimizer, operation: i32, out: *mut zero_traffic_stats) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_step_stats_init(out: *mut zero_step_stats, struct_size: u64) -> i32;

    /// See `zero/stats.h`.
    pub fn zero_stats_optimizer_step(optimizer: *const zero_optimizer, out: *mut zero_step_stats) -> i32;

    /// See `zero/stats.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_describe_library(out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/stats.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_describe_group(group: *const zero_group, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/stats.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_describe_optimizer(optimizer: *const zero_optimizer, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/stats.h`; writes a text to `out[..out_nbytes]`.
    pub fn zero_stats_optimizer_trace(optimizer: *const zero_optimizer, out: *mut c_char, out_nbytes: i64, out_needed: *mut i64) -> i32;

    /// See `zero/zero.h`.
    pub fn zero_abi_version() -> i64;

    /// See `zero/zero.h`.
    pub fn zero_version() -> *const c_char;

    /// See `zero/zero.h`.
    pub fn zero_has_feature(feature: i32) -> i64;
}

/// Every constant by name, for checks against other languages.
pub const CONSTANTS: &[(&str, i64)] = &[
    ("ZERO_OK", ZERO_OK as i64),
    ("ZERO_E_INVALID_ARGUMENT", ZERO_E_INVALID_ARGUMENT as i64),
    ("ZERO_E_BAD_HANDLE", ZERO_E_BAD_HANDLE as i64),
    ("ZERO_E_UNSUPPORTED", ZERO_E_UNSUPPORTED as i64),
    ("ZERO_E_STATE", ZERO_E_STATE as i64),
    ("ZERO_E_OUT_OF_MEMORY", ZERO_E_OUT_OF_MEMORY as i64),
    ("ZERO_E_BUSY", ZERO_E_BUSY as i64),
    ("ZERO_E_MODULE", ZERO_E_MODULE as i64),
    ("ZERO_E_RENDEZVOUS", ZERO_E_RENDEZVOUS as i64),
    ("ZERO_E_SYSTEM", ZERO_E_SYSTEM as i64),
    ("ZERO_E_LAUNCHER", ZERO_E_LAUNCHER as i64),
    ("ZERO_E_DEVICE", ZERO_E_DEVICE as i64),
    ("ZERO_E_CHECKPOINT", ZERO_E_CHECKPOINT as i64),
    ("ZERO_E_NOT_FOUND", ZERO_E_NOT_FOUND as i64),
    ("ZERO_E_REPLICAS_DIFFER", ZERO_E_REPLICAS_DIFFER as i64),
    ("ZERO_E_POOL_LIMIT", ZERO_E_POOL_LIMIT as i64),
    ("ZERO_E_CORRUPT", ZERO_E_CORRUPT as i64),
    ("ZERO_E_DEVICE_FAILED", ZERO_E_DEVICE_FAILED as i64),
    ("ZERO_E_TIMEOUT", ZERO_E_TIMEOUT as i64),
    ("ZERO_E_PEER_LOST", ZERO_E_PEER_LOST as i64),
    ("ZERO_E_PEER_LEFT", ZERO_E_PEER_LEFT as i64),
    ("ZERO_E_PEER_FAILED", ZERO_E_PEER_FAILED as i64),
    ("ZERO_E_MISMATCH", ZERO_E_MISMATCH as i64),
    ("ZERO_E_ABORTED", ZERO_E_ABORTED as i64),
    ("ZERO_E_TRANSPORT", ZERO_E_TRANSPORT as i64),
    ("ZERO_E_FORKED", ZERO_E_FORKED as i64),
    ("ZERO_E_INTERNAL", ZERO_E_INTERNAL as i64),
    ("ZERO_DTYPE_F32", ZERO_DTYPE_F32 as i64),
    ("ZERO_DTYPE_F64", ZERO_DTYPE_F64 as i64),
    ("ZERO_DTYPE_F16", ZERO_DTYPE_F16 as i64),
    ("ZERO_DTYPE_BF16", ZERO_DTYPE_BF16 as i64),
    ("ZERO_DTYPE_I32", ZERO_DTYPE_I32 as i64),
    ("ZERO_DTYPE_I64", ZERO_DTYPE_I64 as i64),
    ("ZERO_DTYPE_U8", ZERO_DTYPE_U8 as i64),
    ("ZERO_DTYPE_U16", ZERO_DTYPE_U16 as i64),
    ("ZERO_DTYPE_F8_E4M3", ZERO_DTYPE_F8_E4M3 as i64),
    ("ZERO_DTYPE_F8_UE5M3", ZERO_DTYPE_F8_UE5M3 as i64),
    ("ZERO_KEY_DEADLINE_MS", ZERO_KEY_DEADLINE_MS as i64),
    ("ZERO_KEY_RENDEZVOUS_MS", ZERO_KEY_RENDEZVOUS_MS as i64),
    ("ZERO_KEY_THREADS", ZERO_KEY_THREADS as i64),
    ("ZERO_KEY_STAGING_BYTES", ZERO_KEY_STAGING_BYTES as i64),
    ("ZERO_KEY_MPI_MODULE", ZERO_KEY_MPI_MODULE as i64),
    ("ZERO_KEY_MPI_SHARED", ZERO_KEY_MPI_SHARED as i64),
    ("ZERO_KEY_NCCL", ZERO_KEY_NCCL as i64),
    ("ZERO_KEY_NCCL_MODULE", ZERO_KEY_NCCL_MODULE as i64),
    ("ZERO_KEY_RENDEZVOUS_PORT", ZERO_KEY_RENDEZVOUS_PORT as i64),
    ("ZERO_KEY_RENDEZVOUS_HOST", ZERO_KEY_RENDEZVOUS_HOST as i64),
    ("ZERO_KEY_SHARD_WEIGHTS", ZERO_KEY_SHARD_WEIGHTS as i64),
    ("ZERO_KEY_STAGE", ZERO_KEY_STAGE as i64),
    ("ZERO_KEY_ALGORITHM", ZERO_KEY_ALGORITHM as i64),
    ("ZERO_KEY_BUCKET_BYTES", ZERO_KEY_BUCKET_BYTES as i64),
    ("ZERO_KEY_DIVISOR", ZERO_KEY_DIVISOR as i64),
    ("ZERO_KEY_NONFINITE", ZERO_KEY_NONFINITE as i64),
    ("ZERO_KEY_GRAD_NORM", ZERO_KEY_GRAD_NORM as i64),
    ("ZERO_KEY_OVERLAP", ZERO_KEY_OVERLAP as i64),
    ("ZERO_KEY_POOL_LIMIT", ZERO_KEY_POOL_LIMIT as i64),
    ("ZERO_KEY_CUSTOM_SLOTS", ZERO_KEY_CUSTOM_SLOTS as i64),
    ("ZERO_KEY_CLIP_NORM", ZERO_KEY_CLIP_NORM as i64),
    ("ZERO_KEY_CLIP_VALUE", ZERO_KEY_CLIP_VALUE as i64),
    ("ZERO_KEY_LOSS_SCALE", ZERO_KEY_LOSS_SCALE as i64),
    ("ZERO_KEY_LOSS_SCALE_DYNAMIC", ZERO_KEY_LOSS_SCALE_DYNAMIC as i64),
    ("ZERO_KEY_LOSS_SCALE_WINDOW", ZERO_KEY_LOSS_SCALE_WINDOW as i64),
    ("ZERO_KEY_LOSS_SCALE_HYSTERESIS", ZERO_KEY_LOSS_SCALE_HYSTERESIS as i64),
    ("ZERO_KEY_LOSS_SCALE_BACKOFF", ZERO_KEY_LOSS_SCALE_BACKOFF as i64),
    ("ZERO_KEY_LOSS_SCALE_GROWTH", ZERO_KEY_LOSS_SCALE_GROWTH as i64),
    ("ZERO_KEY_LOSS_SCALE_MIN", ZERO_KEY_LOSS_SCALE_MIN as i64),
    ("ZERO_KEY_LOSS_SCALE_MAX", ZERO_KEY_LOSS_SCALE_MAX as i64),
    ("ZERO_KEY_ROUNDING", ZERO_KEY_ROUNDING as i64),
    ("ZERO_KEY_SEED", ZERO_KEY_SEED as i64),
    ("ZERO_KEY_UNFILLED", ZERO_KEY_UNFILLED as i64),
    ("ZERO_KEY_ACCUMULATE_DTYPE", ZERO_KEY_ACCUMULATE_DTYPE as i64),
    ("ZERO_KEY_AVERAGE", ZERO_KEY_AVERAGE as i64),
    ("ZERO_KEY_GATHER_BELOW", ZERO_KEY_GATHER_BELOW as i64),
    ("ZERO_KEY_PREFETCH_BYTES", ZERO_KEY_PREFETCH_BYTES as i64),
    ("ZERO_KEY_VERIFY_EVERY", ZERO_KEY_VERIFY_EVERY as i64),
    ("ZERO_KEY_MEMORY_LIMIT", ZERO_KEY_MEMORY_LIMIT as i64),
    ("ZERO_KEY_TRACE_EVENTS", ZERO_KEY_TRACE_EVENTS as i64),
    ("ZERO_KEY_ONE_COPY", ZERO_KEY_ONE_COPY as i64),
    ("ZERO_KEY_DEVICE", ZERO_KEY_DEVICE as i64),
    ("ZERO_KEY_CUDA_MODULE", ZERO_KEY_CUDA_MODULE as i64),
    ("ZERO_KEY_TIER", ZERO_KEY_TIER as i64),
    ("ZERO_KEY_REPLICA_RANKS", ZERO_KEY_REPLICA_RANKS as i64),
    ("ZERO_KEY_SYNC_PERIOD", ZERO_KEY_SYNC_PERIOD as i64),
    ("ZERO_KEY_SYNC_AFTER", ZERO_KEY_SYNC_AFTER as i64),
    ("ZERO_KEY_SYNC_FRAGMENTS", ZERO_KEY_SYNC_FRAGMENTS as i64),
    ("ZERO_KEY_SYNC_DELAY", ZERO_KEY_SYNC_DELAY as i64),
    ("ZERO_KEY_CODE_RANK", ZERO_KEY_CODE_RANK as i64),
    ("ZERO_KEY_GRAD_CODE", ZERO_KEY_GRAD_CODE as i64),
    ("ZERO_KEY_GATHER_CODE", ZERO_KEY_GATHER_CODE as i64),
    ("ZERO_KEY_SYNC_CODE", ZERO_KEY_SYNC_CODE as i64),
    ("ZERO_KEY_CODE_TOP", ZERO_KEY_CODE_TOP as i64),
    ("ZERO_KEY_CODE_AFTER", ZERO_KEY_CODE_AFTER as i64),
    ("ZERO_KEY_RESIDUAL", ZERO_KEY_RESIDUAL as i64),
    ("ZERO_KEY_FLUSH_PERIOD", ZERO_KEY_FLUSH_PERIOD as i64),
    ("ZERO_KEY_PARAM_RANKS", ZERO_KEY_PARAM_RANKS as i64),
    ("ZERO_KEY_NEIGHBOURS", ZERO_KEY_NEIGHBOURS as i64),
    ("ZERO_KEY_GRAD_DELAY", ZERO_KEY_GRAD_DELAY as i64),
    ("ZERO_KEY_STRATEGY", ZERO_KEY_STRATEGY as i64),
    ("ZERO_KEY_SET", ZERO_KEY_SET as i64),
    ("ZERO_KEY_FROZEN", ZERO_KEY_FROZEN as i64),
    ("ZERO_KEY_GRAD_DTYPE", ZERO_KEY_GRAD_DTYPE as i64),
    ("ZERO_KEY_MASTER", ZERO_KEY_MASTER as i64),
    ("ZERO_KEY_FIRST_MOMENT_DTYPE", ZERO_KEY_FIRST_MOMENT_DTYPE as i64),
    ("ZERO_KEY_SECOND_MOMENT_DTYPE", ZERO_KEY_SECOND_MOMENT_DTYPE as i64),
    ("ZERO_KEY_REPLICATED", ZERO_KEY_REPLICATED as i64),
    ("ZERO_KEY_TIED_TO", ZERO_KEY_TIED_TO as i64),
    ("ZERO_KEY_PARAM_DTYPE", ZERO_KEY_PARAM_DTYPE as i64),
    ("ZERO_KEY_ROWS", ZERO_KEY_ROWS as i64),
    ("ZERO_KEY_LR", ZERO_KEY_LR as i64),
    ("ZERO_KEY_MOMENTUM", ZERO_KEY_MOMENTUM as i64),
    ("ZERO_KEY_DAMPENING", ZERO_KEY_DAMPENING as i64),
    ("ZERO_KEY_NESTEROV", ZERO_KEY_NESTEROV as i64),
    ("ZERO_KEY_BETA1", ZERO_KEY_BETA1 as i64),
    ("ZERO_KEY_BETA2", ZERO_KEY_BETA2 as i64),
    ("ZERO_KEY_EPSILON", ZERO_KEY_EPSILON as i64),
    ("ZERO_KEY_WEIGHT_DECAY", ZERO_KEY_WEIGHT_DECAY as i64),
    ("ZERO_KEY_LR_DECAY", ZERO_KEY_LR_DECAY as i64),
    ("ZERO_KEY_INITIAL_ACCUMULATOR", ZERO_KEY_INITIAL_ACCUMULATOR as i64),
    ("ZERO_KEY_NEWTON_SCHULZ_STEPS", ZERO_KEY_NEWTON_SCHULZ_STEPS as i64),
    ("ZERO_KEY_AVERAGE_DECAY", ZERO_KEY_AVERAGE_DECAY as i64),
    ("ZERO_KEY_OUTER_LR", ZERO_KEY_OUTER_LR as i64),
    ("ZERO_KEY_OUTER_MOMENTUM", ZERO_KEY_OUTER_MOMENTUM as i64),
    ("ZERO_KEY_SYNC_MIX", ZERO_KEY_SYNC_MIX as i64),
    ("ZERO_KEY_CODE_MOMENTUM", ZERO_KEY_CODE_MOMENTUM as i64),
    ("ZERO_KEY_CODE_FREEZE", ZERO_KEY_CODE_FREEZE as i64),
    ("ZERO_KEY_STEP_COUNT", ZERO_KEY_STEP_COUNT as i64),
    ("ZERO_KEY_SKIPPED_COUNT", ZERO_KEY_SKIPPED_COUNT as i64),
    ("ZERO_KEY_GROWTH_COUNT", ZERO_KEY_GROWTH_COUNT as i64),
    ("ZERO_KEY_OVERFLOW_COUNT", ZERO_KEY_OVERFLOW_COUNT as i64),
    ("ZERO_KEY_CHECKPOINT_STAGING_BYTES", ZERO_KEY_CHECKPOINT_STAGING_BYTES as i64),
    ("ZERO_KEY_CHECKPOINT_KEEP", ZERO_KEY_CHECKPOINT_KEEP as i64),
    ("ZERO_KEY_CHECKPOINT_DIRECT", ZERO_KEY_CHECKPOINT_DIRECT as i64),
    ("ZERO_KEY_CHECKPOINT_SYNC", ZERO_KEY_CHECKPOINT_SYNC as i64),
    ("ZERO_KEY_CHECKPOINT_SNAPSHOT", ZERO_KEY_CHECKPOINT_SNAPSHOT as i64),
    ("ZERO_KEY_CHECKPOINT_FILE_BYTES", ZERO_KEY_CHECKPOINT_FILE_BYTES as i64),
    ("ZERO_KEY_CHECKPOINT_PROGRESS_MS", ZERO_KEY_CHECKPOINT_PROGRESS_MS as i64),
    ("ZERO_KEY_CHECKPOINT_CONVERT", ZERO_KEY_CHECKPOINT_CONVERT as i64),
    ("ZERO_KEY_CHECKPOINT_MISSING", ZERO_KEY_CHECKPOINT_MISSING as i64),
    ("ZERO_KEY_CHECKPOINT_EXTRA", ZERO_KEY_CHECKPOINT_EXTRA as i64),
    ("ZERO_KEY_CHECKPOINT_MODEL_FILES", ZERO_KEY_CHECKPOINT_MODEL_FILES as i64),
    ("ZERO_KEY_SERVER_RANKS", ZERO_KEY_SERVER_RANKS as i64),
    ("ZERO_KEY_SERVER_ORDER", ZERO_KEY_SERVER_ORDER as i64),
    ("ZERO_KEY_SERVER_STALENESS", ZERO_KEY_SERVER_STALENESS as i64),
    ("ZERO_KEY_SERVER_RULE", ZERO_KEY_SERVER_RULE as i64),
    ("ZERO_KEY_SERVER_RATE", ZERO_KEY_SERVER_RATE as i64),
    ("ZERO_KEY_SERVER_PERIOD", ZERO_KEY_SERVER_PERIOD as i64),
    ("ZERO_SERVER_ORDER_ROUND_ROBIN", ZERO_SERVER_ORDER_ROUND_ROBIN as i64),
    ("ZERO_SERVER_ORDER_ARRIVAL", ZERO_SERVER_ORDER_ARRIVAL as i64),
    ("ZERO_SERVER_RULE_UPDATE", ZERO_SERVER_RULE_UPDATE as i64),
    ("ZERO_SERVER_RULE_AVERAGE", ZERO_SERVER_RULE_AVERAGE as i64),
    ("ZERO_SERVER_RULE_MEAN", ZERO_SERVER_RULE_MEAN as i64),
    ("ZERO_SNAPSHOT_COPY", ZERO_SNAPSHOT_COPY as i64),
    ("ZERO_SNAPSHOT_LAZY", ZERO_SNAPSHOT_LAZY as i64),
    ("ZERO_ROUNDING_NEAREST", ZERO_ROUNDING_NEAREST as i64),
    ("ZERO_ROUNDING_STOCHASTIC", ZERO_ROUNDING_STOCHASTIC as i64),
    ("ZERO_UNFILLED_ZERO", ZERO_UNFILLED_ZERO as i64),
    ("ZERO_UNFILLED_UNTOUCHED", ZERO_UNFILLED_UNTOUCHED as i64),
    ("ZERO_MASTER_F32", ZERO_MASTER_F32 as i64),
    ("ZERO_MASTER_NONE", ZERO_MASTER_NONE as i64),
    ("ZERO_MASTER_REMAINDER", ZERO_MASTER_REMAINDER as i64),
    ("ZERO_DIVISOR_RANKS", ZERO_DIVISOR_RANKS as i64),
    ("ZERO_DIVISOR_ONE", ZERO_DIVISOR_ONE as i64),
    ("ZERO_DIVISOR_WEIGHTS", ZERO_DIVISOR_WEIGHTS as i64),
    ("ZERO_NONFINITE_SKIP", ZERO_NONFINITE_SKIP as i64),
    ("ZERO_NONFINITE_PROPAGATE", ZERO_NONFINITE_PROPAGATE as i64),
    ("ZERO_CODE_NONE", ZERO_CODE_NONE as i64),
    ("ZERO_CODE_F8", ZERO_CODE_F8 as i64),
    ("ZERO_CODE_I8", ZERO_CODE_I8 as i64),
    ("ZERO_CODE_I4", ZERO_CODE_I4 as i64),
    ("ZERO_CODE_TOP", ZERO_CODE_TOP as i64),
    ("ZERO_CODE_LOW_RANK", ZERO_CODE_LOW_RANK as i64),
    ("ZERO_CODE_SIGN", ZERO_CODE_SIGN as i64),
    ("ZERO_RESIDUAL_NONE", ZERO_RESIDUAL_NONE as i64),
    ("ZERO_RESIDUAL_F32", ZERO_RESIDUAL_F32 as i64),
    ("ZERO_NEIGHBOURS_NONE", ZERO_NEIGHBOURS_NONE as i64),
    ("ZERO_NEIGHBOURS_RING", ZERO_NEIGHBOURS_RING as i64),
    ("ZERO_TIER_HOST", ZERO_TIER_HOST as i64),
    ("ZERO_TIER_DEVICE", ZERO_TIER_DEVICE as i64),
    ("ZERO_REDUCE_SUM", ZERO_REDUCE_SUM as i64),
    ("ZERO_REDUCE_AVG", ZERO_REDUCE_AVG as i64),
    ("ZERO_REDUCE_MIN", ZERO_REDUCE_MIN as i64),
    ("ZERO_REDUCE_MAX", ZERO_REDUCE_MAX as i64),
    ("ZERO_REDUCE_PROD", ZERO_REDUCE_PROD as i64),
    ("ZERO_OPERATION_BARRIER", ZERO_OPERATION_BARRIER as i64),
    ("ZERO_OPERATION_BROADCAST", ZERO_OPERATION_BROADCAST as i64),
    ("ZERO_OPERATION_ALL_REDUCE", ZERO_OPERATION_ALL_REDUCE as i64),
    ("ZERO_OPERATION_REDUCE_SCATTER", ZERO_OPERATION_REDUCE_SCATTER as i64),
    ("ZERO_OPERATION_ALL_GATHER", ZERO_OPERATION_ALL_GATHER as i64),
    ("ZERO_OPERATION_REDUCE", ZERO_OPERATION_REDUCE as i64),
    ("ZERO_OPERATION_GATHER", ZERO_OPERATION_GATHER as i64),
    ("ZERO_OPERATION_SCATTER", ZERO_OPERATION_SCATTER as i64),
    ("ZERO_OPERATION_ALL_TO_ALL", ZERO_OPERATION_ALL_TO_ALL as i64),
    ("ZERO_OPERATION_SEND", ZERO_OPERATION_SEND as i64),
    ("ZERO_OPERATION_RECV", ZERO_OPERATION_RECV as i64),
    ("ZERO_SLOT_PARAM", ZERO_SLOT_PARAM as i64),
    ("ZERO_SLOT_GRAD", ZERO_SLOT_GRAD as i64),
    ("ZERO_SLOT_MASTER", ZERO_SLOT_MASTER as i64),
    ("ZERO_SLOT_AVERAGE", ZERO_SLOT_AVERAGE as i64),
    ("ZERO_SLOT_PARAM_SCALE", ZERO_SLOT_PARAM_SCALE as i64),
    ("ZERO_SLOT_ANCHOR", ZERO_SLOT_ANCHOR as i64),
    ("ZERO_SLOT_UPDATE_COUNT", ZERO_SLOT_UPDATE_COUNT as i64),
    ("ZERO_SLOT_FIRST_MOMENT", ZERO_SLOT_FIRST_MOMENT as i64),
    ("ZERO_SLOT_SECOND_MOMENT", ZERO_SLOT_SECOND_MOMENT as i64),
    ("ZERO_SLOT_OUTER_MOMENT", ZERO_SLOT_OUTER_MOMENT as i64),
    ("ZERO_SLOT_FIRST_SCALE", ZERO_SLOT_FIRST_SCALE as i64),
    ("ZERO_SLOT_SECOND_SCALE", ZERO_SLOT_SECOND_SCALE as i64),
    ("ZERO_SLOT_CUSTOM", ZERO_SLOT_CUSTOM as i64),
    ("ZERO_SOURCE_LOCAL", ZERO_SOURCE_LOCAL as i64),
    ("ZERO_SOURCE_ROOT", ZERO_SOURCE_ROOT as i64),
    ("ZERO_SOURCE_SHARDS", ZERO_SOURCE_SHARDS as i64),
    ("ZERO_INITIALISER_CONSTANT", ZERO_INITIALISER_CONSTANT as i64),
    ("ZERO_INITIALISER_UNIFORM", ZERO_INITIALISER_UNIFORM as i64),
    ("ZERO_INITIALISER_NORMAL", ZERO_INITIALISER_NORMAL as i64),
    ("ZERO_SYNC_NONE", ZERO_SYNC_NONE as i64),
    ("ZERO_SYNC_AVERAGE", ZERO_SYNC_AVERAGE as i64),
    ("ZERO_SYNC_BROADCAST", ZERO_SYNC_BROADCAST as i64),
    ("ZERO_FINDING_NONE", ZERO_FINDING_NONE as i64),
    ("ZERO_FINDING_SHARD", ZERO_FINDING_SHARD as i64),
    ("ZERO_FINDING_REPLICAS", ZERO_FINDING_REPLICAS as i64),
    ("ZERO_MICRO_STEP_LAST", ZERO_MICRO_STEP_LAST as i64),
    ("ZERO_MICRO_STEP_LOCAL", ZERO_MICRO_STEP_LOCAL as i64),
    ("ZERO_MICRO_STEP_REDUCE", ZERO_MICRO_STEP_REDUCE as i64),
    ("ZERO_SCOPE_ONE", ZERO_SCOPE_ONE as i64),
    ("ZERO_SCOPE_EACH", ZERO_SCOPE_EACH as i64),
    ("ZERO_PART_ALL", ZERO_PART_ALL as i64),
    ("ZERO_PART_PARAMS", ZERO_PART_PARAMS as i64),
    ("ZERO_EXPORT_AS_KEPT", ZERO_EXPORT_AS_KEPT as i64),
    ("ZERO_TEXT_PLAIN", ZERO_TEXT_PLAIN as i64),
    ("ZERO_TEXT_JSON", ZERO_TEXT_JSON as i64),
    ("ZERO_MEMORY_TOTAL", ZERO_MEMORY_TOTAL as i64),
    ("ZERO_MEMORY_PARAM", ZERO_MEMORY_PARAM as i64),
    ("ZERO_MEMORY_GRAD", ZERO_MEMORY_GRAD as i64),
    ("ZERO_MEMORY_STATE", ZERO_MEMORY_STATE as i64),
    ("ZERO_MEMORY_GRAD_POOL", ZERO_MEMORY_GRAD_POOL as i64),
    ("ZERO_MEMORY_PARAM_POOL", ZERO_MEMORY_PARAM_POOL as i64),
    ("ZERO_MEMORY_STAGING", ZERO_MEMORY_STAGING as i64),
    ("ZERO_MEMORY_BUFFER", ZERO_MEMORY_BUFFER as i64),
    ("ZERO_MEMORY_ACCUMULATED", ZERO_MEMORY_ACCUMULATED as i64),
    ("ZERO_MEMORY_MODULE_BUFFER", ZERO_MEMORY_MODULE_BUFFER as i64),
    ("ZERO_MEMORY_WORKSPACE", ZERO_MEMORY_WORKSPACE as i64),
    ("ZERO_FEATURE_LOCAL", ZERO_FEATURE_LOCAL as i64),
    ("ZERO_FEATURE_MPI", ZERO_FEATURE_MPI as i64),
    ("ZERO_FEATURE_CUDA", ZERO_FEATURE_CUDA as i64),
    ("ZERO_FEATURE_NCCL", ZERO_FEATURE_NCCL as i64),
    ("ZERO_MPI_WORLD", ZERO_MPI_WORLD),
    ("ZERO_VERSION_MAJOR", ZERO_VERSION_MAJOR),
    ("ZERO_VERSION_MINOR", ZERO_VERSION_MINOR),
    ("ZERO_VERSION_PATCH", ZERO_VERSION_PATCH),
    ("ZERO_ABI_MAJOR", ZERO_ABI_MAJOR),
    ("ZERO_ABI_MINOR", ZERO_ABI_MINOR),
];

/// Struct, field, offset, size.
pub type Row = (&'static str, &'static str, usize, usize);

/// Where every field of every struct lies: struct, field, offset and size in bytes; field "" stands for the whole.
pub fn layout() -> Vec<Row> {
    let key_bounds = zero_key_bounds::default();
    let step_result = zero_step_result::default();
    let verify_result = zero_verify_result::default();
    let checkpoint_result = zero_checkpoint_result::default();
    let server_result = zero_server_result::default();
    let memory_stats = zero_memory_stats::default();
    let traffic_stats = zero_traffic_stats::default();
    let step_stats = zero_step_stats::default();
    vec![
        row("zero_key_bounds", "", &key_bounds, &key_bounds),
        row("zero_key_bounds", "struct_size", &key_bounds, &key_bounds.struct_size),
        row("zero_key_bounds", "type", &key_bounds, &key_bounds.type_),
        row("zero_key_bounds", "min_i64", &key_bounds, &key_bounds.min_i64),
        row("zero_key_bounds", "max_i64", &key_bounds, &key_bounds.max_i64),
        row("zero_key_bounds", "default_i64", &key_bounds, &key_bounds.default_i64),
        row("zero_key_bounds", "min_f64", &key_bounds, &key_bounds.min_f64),
        row("zero_key_bounds", "max_f64", &key_bounds, &key_bounds.max_f64),
        row("zero_key_bounds", "default_f64", &key_bounds, &key_bounds.default_f64),
        row("zero_step_result", "", &step_result, &step_result),
        row("zero_step_result", "struct_size", &step_result, &step_result.struct_size),
        row("zero_step_result", "step", &step_result, &step_result.step),
        row("zero_step_result", "skipped", &step_result, &step_result.skipped),
        row("zero_step_result", "skipped_total", &step_result, &step_result.skipped_total),
        row("zero_step_result", "unfilled_count", &step_result, &step_result.unfilled_count),
        row("zero_step_result", "grad_norm", &step_result, &step_result.grad_norm),
        row("zero_step_result", "loss_scale", &step_result, &step_result.loss_scale),
        row("zero_step_result", "stop_reason", &step_result, &step_result.stop_reason),
        row("zero_step_result", "synced", &step_result, &step_result.synced),
        row("zero_step_result", "spread", &step_result, &step_result.spread),
        row("zero_verify_result", "", &verify_result, &verify_result),
        row("zero_verify_result", "struct_size", &verify_result, &verify_result.struct_size),
        row("zero_verify_result", "found", &verify_result, &verify_result.found),
        row("zero_verify_result", "chunk_count", &verify_result, &verify_result.chunk_count),
        row("zero_verify_result", "rank", &verify_result, &verify_result.rank),
        row("zero_verify_result", "other_rank", &verify_result, &verify_result.other_rank),
        row("zero_verify_result", "param", &verify_result, &verify_result.param),
        row("zero_verify_result", "slot", &verify_result, &verify_result.slot),
        row("zero_verify_result", "offset", &verify_result, &verify_result.offset),
        row("zero_verify_result", "count", &verify_result, &verify_result.count),
        row("zero_verify_result", "replica_nbytes", &verify_result, &verify_result.replica_nbytes),
        row("zero_verify_result", "shard_nbytes", &verify_result, &verify_result.shard_nbytes),
        row("zero_checkpoint_result", "", &checkpoint_result, &checkpoint_result),
        row("zero_checkpoint_result", "struct_size", &checkpoint_result, &checkpoint_result.struct_size),
        row("zero_checkpoint_result", "step", &checkpoint_result, &checkpoint_result.step),
        row("zero_checkpoint_result", "nbytes", &checkpoint_result, &checkpoint_result.nbytes),
        row("zero_checkpoint_result", "file_count", &checkpoint_result, &checkpoint_result.file_count),
        row("zero_checkpoint_result", "write_ns", &checkpoint_result, &checkpoint_result.write_ns),
        row("zero_checkpoint_result", "sync_ns", &checkpoint_result, &checkpoint_result.sync_ns),
        row("zero_checkpoint_result", "commit_ns", &checkpoint_result, &checkpoint_result.commit_ns),
        row("zero_checkpoint_result", "direct", &checkpoint_result, &checkpoint_result.direct),
        row("zero_checkpoint_result", "missing", &checkpoint_result, &checkpoint_result.missing),
        row("zero_checkpoint_result", "extra", &checkpoint_result, &checkpoint_result.extra),
        row("zero_checkpoint_result", "converted", &checkpoint_result, &checkpoint_result.converted),
        row("zero_checkpoint_result", "fallback", &checkpoint_result, &checkpoint_result.fallback),
        row("zero_checkpoint_result", "snapshot_nbytes", &checkpoint_result, &checkpoint_result.snapshot_nbytes),
        row("zero_checkpoint_result", "stall_ns", &checkpoint_result, &checkpoint_result.stall_ns),
        row("zero_server_result", "", &server_result, &server_result),
        row("zero_server_result", "struct_size", &server_result, &server_result.struct_size),
        row("zero_server_result", "push_count", &server_result, &server_result.push_count),
        row("zero_server_result", "pull_count", &server_result, &server_result.pull_count),
        row("zero_server_result", "skipped_count", &server_result, &server_result.skipped_count),
        row("zero_server_result", "waited_count", &server_result, &server_result.waited_count),
        row("zero_server_result", "left_count", &server_result, &server_result.left_count),
        row("zero_server_result", "lost_count", &server_result, &server_result.lost_count),
        row("zero_server_result", "received_nbytes", &server_result, &server_result.received_nbytes),
        row("zero_server_result", "sent_nbytes", &server_result, &server_result.sent_nbytes),
        row("zero_server_result", "greatest_age", &server_result, &server_result.greatest_age),
        row("zero_server_result", "age_0_count", &server_result, &server_result.age_0_count),
        row("zero_server_result", "age_1_count", &server_result, &server_result.age_1_count),
        row("zero_server_result", "age_2_count", &server_result, &server_result.age_2_count),
        row("zero_server_result", "age_4_count", &server_result, &server_result.age_4_count),
        row("zero_server_result", "age_8_count", &server_result, &server_result.age_8_count),
        row("zero_server_result", "age_16_count", &server_result, &server_result.age_16_count),
        row("zero_memory_stats", "", &memory_stats, &memory_stats),
        row("zero_memory_stats", "struct_size", &memory_stats, &memory_stats.struct_size),
        row("zero_memory_stats", "now_nbytes", &memory_stats, &memory_stats.now_nbytes),
        row("zero_memory_stats", "peak_nbytes", &memory_stats, &memory_stats.peak_nbytes),
        row("zero_memory_stats", "formula_nbytes", &memory_stats, &memory_stats.formula_nbytes),
        row("zero_memory_stats", "constant_nbytes", &memory_stats, &memory_stats.constant_nbytes),
        row("zero_traffic_stats", "", &traffic_stats, &traffic_stats),
        row("zero_traffic_stats", "struct_size", &traffic_stats, &traffic_stats.struct_size),
        row("zero_traffic_stats", "call_count", &traffic_stats, &traffic_stats.call_count),
        row("zero_traffic_stats", "sent_elements", &traffic_stats, &traffic_stats.sent_elements),
        row("zero_traffic_stats", "sent_nbytes", &traffic_stats, &traffic_stats.sent_nbytes),
        row("zero_step_stats", "", &step_stats, &step_stats),
        row("zero_step_stats", "struct_size", &step_stats, &step_stats.struct_size),
        row("zero_step_stats", "step_count", &step_stats, &step_stats.step_count),
        row("zero_step_stats", "reduce_ns", &step_stats, &step_stats.reduce_ns),
        row("zero_step_stats", "apply_ns", &step_stats, &step_stats.apply_ns),
        row("zero_step_stats", "gather_ns", &step_stats, &step_stats.gather_ns),
        row("zero_step_stats", "stalled_nbytes", &step_stats, &step_stats.stalled_nbytes),
        row("zero_step_stats", "pool_grow_count", &step_stats, &step_stats.pool_grow_count),
        row("zero_step_stats", "overlap_active", &step_stats, &step_stats.overlap_active),
    ]
}

fn row<S, F>(name: &'static str, field: &'static str, whole: &S, part: &F) -> Row {
    let offset = part as *const F as usize - whole as *const S as usize;
    (name, field, offset, core::mem::size_of::<F>())
}
