/*
 * Config: an opaque set of keys and values that groups, buffers, optimizers and parameters are created from. A new key never changes a
 * layout, and a key that this build does not know is an error, never ignored. Groups, buffers and optimizers do not look at keys of other
 * nouns, so that one config may serve them all; parameters and sets refuse them. An object copies what it needs: the config may be changed or
 * released afterwards.
 */
#ifndef ZERO_CONFIG_H
#define ZERO_CONFIG_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_config zero_config;

/* Keys. Values are stable, with gaps by noun; the type, bounds and default of each stand beside it (zero_config_bounds tells them too). */
enum zero_key {
  /* group: 100 .. 199 */
  ZERO_KEY_DEADLINE_MS = 100,   /* i64, 1 .. 2^40, 600000: how long a blocking call waits for the other ranks; time in which
                                   the process is stopped counts */
  ZERO_KEY_RENDEZVOUS_MS = 101, /* i64, 1 .. 2^40, 60000: how long group creation waits for the other ranks */
  ZERO_KEY_THREADS = 102,       /* i64, 0 .. 4096, 0: host threads a rank may use in kernels, of a group for its sums, of an optimizer for
                                   the rest; 0 = the variable ZERO_THREADS, or the cores that its thread may use (affinity) divided by
                                   the ranks of the host that may use the same: those of one process all, and all of the host where
                                   they share no memory; at least 1 */
  ZERO_KEY_STAGING_BYTES = 103, /* i64, 4096 .. 2^30, 1048576: memory per rank for data peers cannot read in place; equal on all ranks */
  ZERO_KEY_MPI_MODULE = 104,    /* str: path of libzero_mpi.so; default: the variable ZERO_MPI_MODULE, then the folder of libzero.so */
  ZERO_KEY_MPI_SHARED = 105,    /* i64, 0 .. 1, 1: MPI ranks of one host move data between them through shared memory; 0: all data moves
                                   through MPI; equal on all ranks */
  ZERO_KEY_NCCL = 106,          /* i64, 0 .. 1, 0: collectives also take memory of the device ZERO_KEY_DEVICE, which moves between ranks
                                   over NCCL (zero/group.h); the same on all ranks */
  ZERO_KEY_NCCL_MODULE = 107,   /* str: path of libzero_nccl.so; default: the variable ZERO_NCCL_MODULE, then the folder of libzero.so */
  ZERO_KEY_RENDEZVOUS_PORT = 108, /* i64, 0 .. 65535, 0: TCP port that ranks of several hosts meet at (zero/group.h); 0 = any that is free,
                                     and with torchrun MASTER_PORT + 1 */
  ZERO_KEY_RENDEZVOUS_HOST = 109, /* str: name or address by which other hosts reach this one; default: its first address that is not
                                     of the host alone */

  /* buffer and partition: 200 .. 299 */
  ZERO_KEY_SHARD_WEIGHTS = 200, /* str: a non-negative integer per rank, with commas and no spaces ("2,1,1"), their sum 1 .. 2^31; shard
                                   sizes follow it; default: equal; the same on all ranks */

  /* optimizer: 300 .. 399. The same on all ranks, or seal fails with ZERO_E_MISMATCH; ZERO_KEY_POOL_LIMIT, _MEMORY_LIMIT, _TRACE_EVENTS,
     _DEVICE and _CUDA_MODULE may differ. */
  ZERO_KEY_STAGE = 300,        /* i64, 0 .. 3, 1: what is sharded: 0 nothing, 1 optimizer states, 2 + gradients, 3 + parameters */
  ZERO_KEY_ALGORITHM = 301,    /* str: "sgd", "adam", "adamw", "adagrad", "lion", "lamb", "muon", "custom" (the caller's own, on the split
                                  step) or "none" (parameters only, for evaluation and inference); default "adamw" */
  ZERO_KEY_BUCKET_BYTES = 302, /* i64, 1024 .. 2^40, 26214400: a bucket takes whole tensors until it would pass this size */
  ZERO_KEY_DIVISOR = 303,      /* i64, a zero_divisor, ZERO_DIVISOR_RANKS: what the sum of gradients is divided by */
  ZERO_KEY_NONFINITE = 304,    /* i64, a zero_nonfinite, ZERO_NONFINITE_SKIP: what a NaN or infinity in a gradient does */
  ZERO_KEY_GRAD_NORM = 305,    /* i64, 0 .. 1, 0: compute the global gradient norm in each step */
  ZERO_KEY_OVERLAP = 306,      /* i64, 0 .. 1, 1: reduce and gather buckets on a progress thread while the caller works; 0: inside calls, in
                                  stages 0 and 1 where ranks share memory within the update itself, which moves the fewest bytes */
  ZERO_KEY_POOL_LIMIT = 307,   /* i64, 0 .. 2^62, 0: most bytes of gradient buckets held unreduced in stages 2 and 3; 0 = no limit. In
                                  worlds of more than one less than the largest bucket is ZERO_E_INVALID_ARGUMENT in seal; gradients that
                                  come too far out of order are ZERO_E_POOL_LIMIT in grad_acquire, grad_ready, micro_step, reduce or step */
  ZERO_KEY_CUSTOM_SLOTS = 308, /* i64, 0 .. 4, 0: fp32 slots per element that algorithm "custom" keeps */
  ZERO_KEY_CLIP_NORM = 309,    /* f64, 0 .. 1e30, 0: gradients are scaled down so that their global norm is at most this; 0 = off */
  ZERO_KEY_CLIP_VALUE = 310,   /* f64, 0 .. 1e30, 0: elements of gradients are clamped to [-value, value]; 0 = off; not with CLIP_NORM */
  ZERO_KEY_LOSS_SCALE = 311,   /* f64, 2^-100 .. 2^100, 1 (dynamic: 2^16): what the caller multiplies its loss by; gradients are divided by it */
  ZERO_KEY_LOSS_SCALE_DYNAMIC = 312,    /* i64, 0 .. 1, 0: the scale follows overflows; needs ZERO_NONFINITE_SKIP */
  ZERO_KEY_LOSS_SCALE_WINDOW = 313,     /* i64, 1 .. 2^62, 2000: steps without overflow after which the scale grows */
  ZERO_KEY_LOSS_SCALE_HYSTERESIS = 314, /* i64, 1 .. 2^62, 1: overflows (since the scale last grew) before the scale backs off */
  ZERO_KEY_LOSS_SCALE_BACKOFF = 315,    /* f64, 2^-30 .. below 1, 0.5: factor of a back-off */
  ZERO_KEY_LOSS_SCALE_GROWTH = 316,     /* f64, 1 .. 2^30, 2: factor of a growth */
  ZERO_KEY_LOSS_SCALE_MIN = 317,        /* f64, 2^-100 .. 2^100, 1: never below */
  ZERO_KEY_LOSS_SCALE_MAX = 318,        /* f64, 2^-100 .. 2^100, 2^32: never above */
  ZERO_KEY_ROUNDING = 319,         /* i64, a zero_rounding, ZERO_ROUNDING_NEAREST: of 16-bit parameters without master, and of states */
  ZERO_KEY_SEED = 320,             /* i64, 0 .. 2^62, 0: of stochastic rounding */
  ZERO_KEY_UNFILLED = 321,         /* i64, a zero_unfilled, ZERO_UNFILLED_ZERO: what becomes of parameters that no rank filled in a step */
  ZERO_KEY_ACCUMULATE_DTYPE = 322, /* i64, 0 or ZERO_DTYPE_F32, 0: sums over micro-steps on one rank; 0 = in the gradient's dtype,
                                      but with ZERO_DIVISOR_WEIGHTS in fp32 */
  ZERO_KEY_AVERAGE = 323,          /* i64, 0 .. 1, 0: keep an exponential moving average of each parameter (ZERO_KEY_AVERAGE_DECAY) */
  ZERO_KEY_GATHER_BELOW = 324,     /* i64, 0 .. 2^62, 0: tensors of fewer elements stay whole on every rank in stage 3; it moves elements in
                                      the flat space, so that another value gives other bits with ZERO_ROUNDING_STOCHASTIC, and may round the
                                      gradient norm in another way */
  ZERO_KEY_PREFETCH_BYTES = 325,   /* i64, 0 .. 2^62, 16777216: most bytes of parameters gathered ahead of param_acquire in stage 3 */
  ZERO_KEY_VERIFY_EVERY = 326,     /* i64, 0 .. 2^62, 0: every so many steps, a step first compares each shard with what the step before it
                                      left there (ZERO_E_CORRUPT; zero_optimizer_verify says more); 0 = never */
  ZERO_KEY_MEMORY_LIMIT = 327,     /* i64, 0 .. 2^62, 0: bytes that the ranks of a host may take together, or seal fails; 0 = what is
                                      available there and in their control groups. What formulas count at seal (zero/stats.h), not
                                      what micro-steps add up later, staging of groups, nor the rest of pages */
  ZERO_KEY_TRACE_EVENTS = 328,     /* i64, 0 .. 2^24, 0: newest events kept for zero_stats_optimizer_trace, 40 bytes each */
  ZERO_KEY_ONE_COPY = 329,         /* i64, 0 .. 1, 0: ranks of one host keep one copy of the parameters (zero/optimizer.h); stages 1, 2 */
  ZERO_KEY_DEVICE = 330,           /* i64, -1 .. 4095, -1: CUDA device on which the caller's gradients and parameters may lie
                                      (zero/optimizer.h), in its primary context, which CUDA's run time works in; -1 = host memory
                                      only; may differ between ranks */
  ZERO_KEY_CUDA_MODULE = 331,      /* str: path of libzero_cuda.so; default: the variable ZERO_CUDA_MODULE, then the folder of libzero.so */
  ZERO_KEY_TIER = 332,             /* i64, a zero_tier, ZERO_TIER_HOST: where parameters, gradients and states lie; the same on all ranks */

  /* parameters: 350 .. 399. Dtypes and master may also be set in the optimizer's config, for all parameters; the others may not. */
  ZERO_KEY_SET = 350,                 /* i64, 0 .. 4095, 0: the parameter set (zero_optimizer_add_set) */
  ZERO_KEY_FROZEN = 351,              /* i64, 0 .. 1, 0: never updated: no gradient, no states */
  ZERO_KEY_GRAD_DTYPE = 352,          /* i64, f32, f16, bf16 or 0, 0: of the gradient; 0 = that of the parameter */
  ZERO_KEY_MASTER = 353,              /* i64, a zero_master, ZERO_MASTER_F32: how 16-bit parameters are kept for updates */
  ZERO_KEY_FIRST_MOMENT_DTYPE = 354,  /* i64, f32, bf16 or f8_e4m3, f32; no matter with algorithms that have no first moment */
  ZERO_KEY_SECOND_MOMENT_DTYPE = 355, /* i64, f32, bf16 or f8_ue5m3, f32; no matter with algorithms that have no second moment */
  ZERO_KEY_REPLICATED = 356,          /* i64, 0 .. 1, 0: other ranks of the model group hold the same; in the norm it counts on rank 0 of
                                         that group alone (zero_optimizer_set_model_group) */
  ZERO_KEY_TIED_TO = 357,             /* i64, 0 .. 2^62: id of an earlier parameter whose memory this one shares; then the only key */
  ZERO_KEY_PARAM_DTYPE = 358,         /* i64, f8_e4m3 or 0, 0: how a parameter is stored and gathered; 0 = in its own dtype */

  /* hyper-parameters, changeable at any step with zero_optimizer_set_f64 unless it says otherwise: 400 .. 499 */
  ZERO_KEY_LR = 400,           /* f64, 0 .. 1e30, 1e-3 (adagrad: 1e-2, lion: 1e-4) */
  ZERO_KEY_MOMENTUM = 401,     /* f64, 0 .. 1, 0 (muon: 0.95): sgd, muon; in sgd 0 at seal stays 0 */
  ZERO_KEY_DAMPENING = 402,    /* f64, 0 .. 1, 0: sgd */
  ZERO_KEY_NESTEROV = 403,     /* f64, 0 or 1, 0 (muon: 1): sgd, muon; needs momentum > 0 and dampening 0 */
  ZERO_KEY_BETA1 = 404,        /* f64, 0 .. below 1, 0.9: adam, adamw, lamb, lion */
  ZERO_KEY_BETA2 = 405,        /* f64, 0 .. below 1, 0.999 (lion: 0.99): adam, adamw, lamb, lion */
  ZERO_KEY_EPSILON = 406,      /* f64, 0 .. 1e30, 1e-8 (adagrad: 1e-10, lamb: 1e-6, muon: 1e-7): all but sgd, lion */
  ZERO_KEY_WEIGHT_DECAY = 407, /* f64, 0 .. 1e30, 0 (adamw, lamb: 0.01, muon: 0.1): added to the gradient in sgd, adam,
                                  adagrad; decoupled in the others */
  ZERO_KEY_LR_DECAY = 408,            /* f64, 0 .. 1e30, 0: adagrad: the rate of step t is lr / (1 + (t - 1) * lr_decay) */
  ZERO_KEY_INITIAL_ACCUMULATOR = 409, /* f64, 0 .. 1e30, 0: adagrad: sum of squares before the first step; as it is at seal */
  ZERO_KEY_NEWTON_SCHULZ_STEPS = 410, /* f64, 1 .. 99, a whole number, 5: muon */
  ZERO_KEY_AVERAGE_DECAY = 411, /* f64, 0 .. 1, 0.999: average = decay * average + (1 - decay) * parameter */

  /* scalars of a running optimizer, for zero_optimizer_get_i64 and _set_i64; no config takes them: 500 .. 599 */
  ZERO_KEY_STEP_COUNT = 500,    /* i64, 0 .. 2^62: steps applied so far (skipped ones are not
                                   counted); sets ZERO_SLOT_UPDATE_COUNT of every tensor too */
  ZERO_KEY_SKIPPED_COUNT = 501, /* i64, 0 .. 2^62: steps skipped so far */
  ZERO_KEY_GROWTH_COUNT = 502,  /* i64, 0 .. 2^62: dynamic loss scale: steps without overflow since it last changed */
  ZERO_KEY_OVERFLOW_COUNT = 503, /* i64, 0 .. 2^62: dynamic loss scale: overflows that hysteresis has swallowed */

  /* checkpoints (checkpoint.h): 600 .. 699 */
  ZERO_KEY_CHECKPOINT_STAGING_BYTES = 600, /* i64, 65536 .. 2^34, 33554432: memory through which files are written and read */
  ZERO_KEY_CHECKPOINT_KEEP = 601,        /* i64, 0 .. 2^31, 0: newest saves of this run that are kept in the folder; 0 = all */
  ZERO_KEY_CHECKPOINT_DIRECT = 602,      /* i64, 0 .. 1, 1: past the page cache where the file system can */
  ZERO_KEY_CHECKPOINT_SYNC = 603,        /* i64, 0 .. 1, 1: 0 = a save may be lost in a power cut; faster, for scratch folders */
  ZERO_KEY_CHECKPOINT_FILE_BYTES = 606,  /* i64, 4096 .. 2^62, 4294967296: a model file is not extended beyond this size */
  ZERO_KEY_CHECKPOINT_PROGRESS_MS = 607, /* i64, 1 .. 2^40, 600000: longest time in which a rank may write or read nothing */
  ZERO_KEY_CHECKPOINT_CONVERT = 608,     /* i64, 0 .. 1, 0: 1 = states of another dtype are converted */
  ZERO_KEY_CHECKPOINT_MISSING = 609,     /* i64, 0 .. 1, 0: 1 = what the save lacks stays as it is here */
  ZERO_KEY_CHECKPOINT_EXTRA = 610,       /* i64, 0 .. 1, 0: 1 = what only the save has is passed over */
  ZERO_KEY_CHECKPOINT_MODEL_FILES = 611  /* i64, 0 .. 1, 1: 0 = no files with whole parameters for other tools; each rank saves its shard */
};

enum zero_rounding {
  ZERO_ROUNDING_NEAREST = 0,   /* to nearest, ties to even */
  ZERO_ROUNDING_STOCHASTIC = 1 /* up or down with probabilities that keep the mean; keyed by seed, step and place of the element, never by rank */
};

enum zero_unfilled {
  ZERO_UNFILLED_ZERO = 0,     /* their gradient counts as zero */
  ZERO_UNFILLED_UNTOUCHED = 1 /* parameter and states stay as they are, but the average moves as in
                                 every step; decided alike on all ranks. The updates of each tensor
                                 are counted (ZERO_SLOT_UPDATE_COUNT) */
};

enum zero_master {
  ZERO_MASTER_F32 = 0,      /* an fp32 copy: 4 bytes per element; f32 parameters are their own */
  ZERO_MASTER_NONE = 1,     /* the 16-bit parameter itself is updated */
  ZERO_MASTER_REMAINDER = 2 /* bf16 parameters: the 16 bits they lack of an fp32 copy; ties of the parameter are then rounded away from zero */
};

enum zero_divisor {
  ZERO_DIVISOR_RANKS = 0,  /* average over ranks */
  ZERO_DIVISOR_ONE = 1,    /* plain sum */
  ZERO_DIVISOR_WEIGHTS = 2 /* each rank's gradient times its weight (zero_optimizer_set_weight), in fp32, divided by the sum of weights */
};

enum zero_nonfinite {
  ZERO_NONFINITE_SKIP = 0,     /* a non-finite gradient anywhere makes all ranks skip the same step, state bit-identical */
  ZERO_NONFINITE_PROPAGATE = 1 /* gradients are not looked at */
};

enum zero_tier {
  ZERO_TIER_HOST = 0,  /* the host's memory */
  ZERO_TIER_DEVICE = 1 /* that of the device ZERO_KEY_DEVICE, where updates and sums are made too (zero/optimizer.h) */
};

/*
 * Makes an empty config: every key has its default.
 *   out  [out] the config, the caller's
 * Errors: ZERO_E_INVALID_ARGUMENT, ZERO_E_OUT_OF_MEMORY. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_config_create(zero_config **out);

/*
 * Sets a key of type i64, f64 or str.
 *   key    [in] a zero_key
 *   value  [in] within the key's bounds; a string is copied, at most 4095 bytes
 * Errors: ZERO_E_BAD_HANDLE; ZERO_E_UNSUPPORTED for an unknown key; ZERO_E_INVALID_ARGUMENT when the key has another type or the value is
 * out of bounds, none of those that stand beside the key, not a number or NULL. What a string may say is checked where it is used; "" is as
 * if the key were not set. Threads: one thread per config at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_config_set_i64(zero_config *config, int32_t key, int64_t value);
ZERO_API int32_t zero_config_set_f64(zero_config *config, int32_t key, double value);
ZERO_API int32_t zero_config_set_str(zero_config *config, int32_t key, const char *value);

/* How a key is typed and bounded. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_key_bounds {
  uint64_t struct_size;  /* [in] sizeof(zero_key_bounds) as the caller knows it */
  int64_t type;          /* 1 = i64, 2 = f64, 3 = str */
  int64_t min_i64;       /* i64 keys: inclusive bounds and default */
  int64_t max_i64;
  int64_t default_i64;
  double min_f64;        /* f64 keys: inclusive bounds and default */
  double max_f64;
  double default_f64;
} zero_key_bounds;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_key_bounds_init(zero_key_bounds *out, uint64_t struct_size);

/*
 * Tells type, bounds and default of a key; defaults that an algorithm has of its own stand beside the key alone.
 *   key  [in]
 *   out  [in, out] struct_size set by the caller
 * Errors: ZERO_E_UNSUPPORTED for an unknown key, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_config_bounds(int32_t key, zero_key_bounds *out);

/*
 * Memory hook: private arenas come from alloc and go back to free; arenas that other ranks read or write, threads or processes, are made by
 * the library, which only tells the hook about them. Sizes are in bytes; alloc returns memory aligned to `alignment` (a power of two) or
 * NULL. Both are called on the thread that makes the libzero call, never under a lock the caller can see, and must not call libzero.
 */
typedef void *(*zero_alloc_fn)(uint64_t nbytes, uint64_t alignment, void *user);
typedef void (*zero_free_fn)(void *data, uint64_t nbytes, void *user);
typedef void (*zero_shared_fn)(int64_t delta_nbytes, void *user);

/*
 * Gives the hook to every object created from this config.
 *   alloc, free_fn  [in] both or neither
 *   shared          [in] told of shared arenas: +bytes when made, -bytes when gone; may be NULL
 *   user            [in] passed through; must outlive every object made from the config
 * Poll twins: zero_stats_optimizer_memory, zero_stats_buffer_memory. Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: one
 * thread per config at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_config_set_allocator(zero_config *config, zero_alloc_fn alloc, zero_free_fn free_fn, zero_shared_fn shared,
                                           void *user);

/* Gives the handle back; NULL is allowed. Threads: any. Since ZERO_0.1. */
ZERO_API void zero_config_release(zero_config *config);

#ifdef __cplusplus
}
#endif

#endif
