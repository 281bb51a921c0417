/*
 * Config: an opaque set of keys and values that groups, buffers, optimizers and parameters are created from. A new key never changes a
 * layout, and a key that this build does not know is an error, never ignored. An object copies what it needs: the config may be changed or
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
  ZERO_KEY_DEADLINE_MS = 100,   /* i64, 1 .. 2^40, 600000: how long a blocking call waits for the other ranks */
  ZERO_KEY_RENDEZVOUS_MS = 101, /* i64, 1 .. 2^40, 60000: how long group creation waits for the other ranks */
  ZERO_KEY_THREADS = 102,       /* i64, 0 .. 4096, 0: host threads a rank may use in kernels; 0 = max(1, cores / local ranks) */
  ZERO_KEY_STAGING_BYTES = 103, /* i64, 4096 .. 2^30, 1048576: memory per rank for data peers cannot read in place; equal on all ranks */
  ZERO_KEY_MPI_MODULE = 104,    /* str: path of libzero_mpi.so; default: the variable ZERO_MPI_MODULE, then the folder of libzero.so */

  /* buffer and partition: 200 .. 299 */
  ZERO_KEY_SHARD_WEIGHTS = 200, /* str: a non-negative integer per rank, with commas ("2,1,1"); shard sizes follow it; default: equal */

  /* optimizer: 300 .. 399 */
  ZERO_KEY_STAGE = 300,        /* i64, 0 .. 3, 1: what is sharded: 0 nothing, 1 optimizer states, 2 + gradients, 3 + parameters */
  ZERO_KEY_ALGORITHM = 301,    /* str: "sgd", "adam", "adamw" or "custom" (the caller's own, on the split step); default "adamw" */
  ZERO_KEY_BUCKET_BYTES = 302, /* i64, 1024 .. 2^40, 26214400: a bucket takes whole tensors until it would pass this size */
  ZERO_KEY_DIVISOR = 303,      /* i64, a zero_divisor, ZERO_DIVISOR_RANKS: what the sum of gradients is divided by */
  ZERO_KEY_NONFINITE = 304,    /* i64, a zero_nonfinite, ZERO_NONFINITE_SKIP: what a NaN or infinity in a gradient does */
  ZERO_KEY_GRAD_NORM = 305,    /* i64, 0 .. 1, 0: compute the global gradient norm in each step */
  ZERO_KEY_OVERLAP = 306,      /* i64, 0 .. 1, 1: reduce buckets on the progress thread while the caller works */
  ZERO_KEY_POOL_LIMIT = 307,   /* i64, 0 .. 2^62, 0: most bytes of gradient buckets held unreduced in stages 2 and 3; 0 = no limit */
  ZERO_KEY_CUSTOM_SLOTS = 308, /* i64, 0 .. 4, 0: fp32 slots per element that algorithm "custom" keeps */

  /* hyper-parameters, changeable at any step with zero_optimizer_set_f64: 400 .. 499 */
  ZERO_KEY_LR = 400,           /* f64, 0 .. 1e30, 1e-3 */
  ZERO_KEY_MOMENTUM = 401,     /* f64, 0 .. 1, 0: sgd */
  ZERO_KEY_DAMPENING = 402,    /* f64, 0 .. 1, 0: sgd */
  ZERO_KEY_NESTEROV = 403,     /* f64, 0 or 1, 0: sgd; needs momentum > 0 and dampening 0 */
  ZERO_KEY_BETA1 = 404,        /* f64, 0 .. below 1, 0.9: adam, adamw */
  ZERO_KEY_BETA2 = 405,        /* f64, 0 .. below 1, 0.999: adam, adamw */
  ZERO_KEY_EPSILON = 406,      /* f64, 0 .. 1e30, 1e-8: adam, adamw */
  ZERO_KEY_WEIGHT_DECAY = 407, /* f64, 0 .. 1e30, 0 (adamw: 0.01): added to the gradient in sgd and adam, decoupled in adamw */

  /* scalars of a running optimizer, for zero_optimizer_get_i64 and _set_i64: 500 .. 599 */
  ZERO_KEY_STEP_COUNT = 500 /* i64, 0 .. 2^62: steps applied so far (skipped ones are not counted) */
};

enum zero_divisor {
  ZERO_DIVISOR_RANKS = 0,  /* average over ranks */
  ZERO_DIVISOR_ONE = 1,    /* plain sum */
  ZERO_DIVISOR_WEIGHTS = 2 /* each rank's gradient times its weight (zero_optimizer_set_weight), divided by the sum of weights */
};

enum zero_nonfinite {
  ZERO_NONFINITE_SKIP = 0,     /* a non-finite gradient anywhere makes all ranks skip the same step, state bit-identical */
  ZERO_NONFINITE_PROPAGATE = 1 /* gradients are not looked at */
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
 * out of bounds, not a number or NULL. Threads: one thread per config at a time. Since ZERO_0.1.
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
 * Tells type, bounds and default of a key.
 *   key  [in]
 *   out  [in, out] struct_size set by the caller
 * Errors: ZERO_E_UNSUPPORTED for an unknown key, ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_config_bounds(int32_t key, zero_key_bounds *out);

/*
 * Memory hook: private arenas come from alloc and go back to free; arenas shared with other processes are made by the library, which only
 * tells the hook about them. Sizes are in bytes; alloc returns memory aligned to `alignment` (a power of two) or NULL. Both are called on
 * the thread that makes the libzero call, never under a lock the caller can see, and must not call libzero.
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
