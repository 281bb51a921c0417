/*
 * Statistics: bytes by category, traffic by operation, time by phase, and texts that say what was chosen and why.
 * Common errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. Nothing here is a collective.
 */
#ifndef ZERO_STATS_H
#define ZERO_STATS_H

#include <zero/buffer.h>
#include <zero/group.h>
#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is for. */
enum zero_memory {
  ZERO_MEMORY_TOTAL = 0,
  ZERO_MEMORY_PARAM = 1,       /* parameters this rank keeps */
  ZERO_MEMORY_GRAD = 2,        /* gradients this rank keeps */
  ZERO_MEMORY_STATE = 3,       /* optimizer states, update counts (8 bytes per tensor) */
  ZERO_MEMORY_GRAD_POOL = 4,   /* stages 2 and 3: buckets of gradients not yet reduced */
  ZERO_MEMORY_PARAM_POOL = 5,  /* stage 3: gathered parameters; before begin whole first values */
  ZERO_MEMORY_STAGING = 6,     /* shared memory of the optimizer's groups */
  ZERO_MEMORY_BUFFER = 7,      /* sharded buffers */
  ZERO_MEMORY_ACCUMULATED = 8, /* gradients that micro-steps add up, beyond ZERO_MEMORY_GRAD */
  ZERO_MEMORY_MODULE_BUFFER = 9, /* module buffers, whole on every rank */
  ZERO_MEMORY_WORKSPACE = 10   /* of algorithm "muon" for matrices, of "lamb" for norms; in stage 3 codes of the largest 8-bit parameter */
};

/* Bytes on this rank. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_memory_stats {
  uint64_t struct_size; /* [in] sizeof(zero_memory_stats) as the caller knows it */
  int64_t now_nbytes;
  int64_t peak_nbytes;
  int64_t formula_nbytes;  /* optimizer after seal: what its stage keeps until release, element by element and slot by slot; 0 for pools */
  int64_t constant_nbytes; /* optimizer after seal: what comes on top by buckets, padding and largest tensor; at most this in steady use */
} zero_memory_stats;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_memory_stats_init(zero_memory_stats *out, uint64_t struct_size);

/*
 * Memory of an optimizer or a buffer.
 *   category  [in]  a zero_memory
 *   out       [in, out] struct_size set by the caller
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_stats_optimizer_memory(const zero_optimizer *optimizer, int32_t category, zero_memory_stats *out);
ZERO_API int32_t zero_stats_buffer_memory(const zero_buffer *buffer, int32_t category, zero_memory_stats *out);

/* Traffic of one operation in one group, counted on this rank. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_traffic_stats {
  uint64_t struct_size;  /* [in] sizeof(zero_traffic_stats) as the caller knows it */
  int64_t call_count;
  int64_t sent_elements; /* elements offered to other ranks: each element counts once per rank it goes to */
  int64_t sent_nbytes;
} zero_traffic_stats;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_traffic_stats_init(zero_traffic_stats *out, uint64_t struct_size);

/*
 * Traffic of a group's collectives, or of an optimizer's own groups (reduce_scatter: gradients; all_gather: parameters, in stage 0 sums of
 * gradients or states; all_reduce: votes). What a step writes straight into the memory of other ranks counts as gathered.
 *   operation  [in]  a zero_operation
 *   out        [in, out] struct_size set by the caller
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_stats_group_traffic(const zero_group *group, int32_t operation, zero_traffic_stats *out);
ZERO_API int32_t zero_stats_optimizer_traffic(const zero_optimizer *optimizer, int32_t operation, zero_traffic_stats *out);

/* Time and stalls of an optimizer since seal. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_step_stats {
  uint64_t struct_size;       /* [in] sizeof(zero_step_stats) as the caller knows it */
  int64_t step_count;         /* calls of step, or of reduce */
  int64_t reduce_ns;          /* waiting for and making reductions inside step */
  int64_t apply_ns;
  int64_t gather_ns;          /* waiting for and making gathers inside step; not what goes on behind it */
  int64_t stalled_nbytes;     /* gradients that were ready but waited for an earlier bucket, summed over steps */
  int64_t pool_grow_count;    /* times the gradient pool grew beyond its first size */
  int64_t overlap_active;     /* 1 when a progress thread reduces while the caller works */
} zero_step_stats;

/* Sets every field to zero and struct_size to the given size. Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1. */
ZERO_API int32_t zero_step_stats_init(zero_step_stats *out, uint64_t struct_size);

/*
 *   out  [in, out] struct_size set by the caller
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_stats_optimizer_step(const zero_optimizer *optimizer, zero_step_stats *out);

/*
 * Texts: what was chosen and why (transport, host ranks, kernel target, threads, overlap, buckets, memory formula).
 *   out             [out] receives the text, always terminated, cut to fit; may be NULL when out_nbytes is 0
 *   out_nbytes      [in]  bytes at out, >= 0
 *   out_needed      [out] bytes the whole text needs, its NUL included; may be NULL
 * zero_describe_library: version, ABI, kernel targets, modules found. Since ZERO_0.1.
 */
ZERO_API int32_t zero_describe_library(char *out, int64_t out_nbytes, int64_t *out_needed);
ZERO_API int32_t zero_describe_group(const zero_group *group, char *out, int64_t out_nbytes, int64_t *out_needed);
ZERO_API int32_t zero_describe_optimizer(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed);

/*
 * What the optimizer did and when on this rank, as JSON in the Chrome trace format, which ui.perfetto.dev and chrome://tracing show: the
 * newest ZERO_KEY_TRACE_EVENTS events since seal. Tracks: gradients given, operations (acquires, parts of steps), reductions, gathers
 * (ahead of acquires or behind steps). Times are those of the host's monotonic clock: the traces of a host's ranks fit together when their
 * "traceEvents" are joined.
 * Arguments as in zero_describe_*. Call it between steps: later events change what is needed.
 * Errors also: ZERO_E_STATE before zero_optimizer_seal, or when ZERO_KEY_TRACE_EVENTS is 0. Since ZERO_0.1.
 */
ZERO_API int32_t zero_stats_optimizer_trace(const zero_optimizer *optimizer, char *out, int64_t out_nbytes, int64_t *out_needed);

#ifdef __cplusplus
}
#endif

#endif
