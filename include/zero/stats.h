/**
 * @file
 * Statistics: bytes by category, traffic by operation, time by phase, and texts that state the
 * chosen configuration and its reasons.
 *
 * @code
 * zero_memory_stats memory;
 * zero_memory_stats_init(&memory, sizeof memory);
 * zero_stats_optimizer_memory(optimizer, ZERO_MEMORY_STATE, &memory);
 * printf("states: %lld bytes, at most %lld\n", (long long)memory.now_nbytes,
 *        (long long)memory.peak_nbytes);
 * char text[4096];
 * zero_describe_optimizer(optimizer, text, sizeof text, NULL);
 * puts(text);
 * @endcode
 *
 * Errors of all functions: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: any. No function is
 * a collective.
 */
#ifndef ZERO_STATS_H
#define ZERO_STATS_H

#include <zero/buffer.h>
#include <zero/group.h>
#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The purpose of memory. */
enum zero_memory {
  ZERO_MEMORY_TOTAL = 0,     /**< All categories together. */
  ZERO_MEMORY_PARAM = 1,     /**< Parameters this rank keeps. */
  ZERO_MEMORY_GRAD = 2,      /**< Gradients this rank keeps; twice with ZERO_KEY_GRAD_DELAY. */
  ZERO_MEMORY_STATE = 3,     /**< Optimizer states, and update counts (8 bytes per tensor). */
  ZERO_MEMORY_GRAD_POOL = 4, /**< Stages 2 and 3: buckets of gradients not yet reduced. */
  /** Stage 3: gathered parameters; before begin: whole first values. */
  ZERO_MEMORY_PARAM_POOL = 5,
  ZERO_MEMORY_STAGING = 6, /**< Shared memory of the optimizer's groups. */
  ZERO_MEMORY_BUFFER = 7,  /**< Sharded buffers. */
  /** Gradients that micro-steps add up, beyond ZERO_MEMORY_GRAD. */
  ZERO_MEMORY_ACCUMULATED = 8,
  ZERO_MEMORY_MODULE_BUFFER = 9, /**< Module buffers, whole on every rank. */
  /** Workspace of algorithm "muon" for matrices and of "lamb" for norms; in stage 3 the codes of
      the largest 8-bit parameter. */
  ZERO_MEMORY_WORKSPACE = 10
};

/** Bytes on this rank. Only 8-byte fields; fields are appended, never moved. */
typedef struct zero_memory_stats {
  uint64_t struct_size; /**< [in] sizeof(zero_memory_stats) as the caller knows it. */
  int64_t now_nbytes;   /**< Bytes at present. */
  int64_t peak_nbytes;  /**< Most bytes so far. */
  /** Optimizer after seal: the bytes that its stage keeps until release, element by element and
      slot by slot; 0 for pools. */
  int64_t formula_nbytes;
  /** Optimizer after seal: bytes beyond the formula for buckets, padding and the largest tensor. In
      steady use the excess is at most this. */
  int64_t constant_nbytes;
} zero_memory_stats;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_memory_stats) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_memory_stats_init(zero_memory_stats *out, uint64_t struct_size);

/**
 * Returns the memory of an optimizer.
 *
 * @param[in]     optimizer  The optimizer.
 * @param[in]     category   A zero_memory.
 * @param[in,out] out        struct_size set by the caller.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_optimizer_memory(const zero_optimizer *optimizer, int32_t category,
                                             zero_memory_stats *out);
/**
 * Returns the memory of a buffer.
 *
 * @param[in]     buffer    The buffer.
 * @param[in]     category  A zero_memory.
 * @param[in,out] out       struct_size set by the caller.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_buffer_memory(const zero_buffer *buffer, int32_t category,
                                          zero_memory_stats *out);

/**
 * Traffic of one operation in one group, counted on this rank. Only 8-byte fields; fields are
 * appended, never moved.
 */
typedef struct zero_traffic_stats {
  uint64_t struct_size; /**< [in] sizeof(zero_traffic_stats) as the caller knows it. */
  int64_t call_count;   /**< Calls of the operation. */
  /** Elements offered to other ranks. Each element counts once per rank that it goes to. */
  int64_t sent_elements;
  int64_t sent_nbytes; /**< The same in bytes. */
} zero_traffic_stats;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_traffic_stats) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_traffic_stats_init(zero_traffic_stats *out, uint64_t struct_size);

/**
 * Returns the traffic of a group's collectives.
 *
 * @param[in]     group      The group.
 * @param[in]     operation  A zero_operation.
 * @param[in,out] out        struct_size set by the caller.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_group_traffic(const zero_group *group, int32_t operation,
                                          zero_traffic_stats *out);
/**
 * Returns the traffic of an optimizer's own groups:
 * - reduce_scatter: gradients.
 * - all_gather: parameters; in stage 0 sums of gradients, or states. Data that a step writes
 *   directly into the memory of other ranks counts as gathered.
 * - all_reduce: the flags that ranks exchange in each step.
 * - send: values that replicas send to their neighbours (ZERO_KEY_NEIGHBOURS).
 *
 * @param[in]     optimizer  The optimizer.
 * @param[in]     operation  A zero_operation.
 * @param[in,out] out        struct_size set by the caller.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_optimizer_traffic(const zero_optimizer *optimizer, int32_t operation,
                                              zero_traffic_stats *out);

/**
 * Time and stalls of an optimizer since seal. Only 8-byte fields; fields are appended, never moved.
 */
typedef struct zero_step_stats {
  uint64_t struct_size; /**< [in] sizeof(zero_step_stats) as the caller knows it. */
  int64_t step_count;   /**< Calls of step, or of reduce. */
  int64_t reduce_ns;    /**< Time inside step for reductions and for waiting for them. */
  int64_t apply_ns;     /**< Time inside step for updates. */
  /** Time inside step for gathers and for waiting for them. Gathers behind a step do not count. */
  int64_t gather_ns;
  /** Bytes of gradients that were ready but waited for an earlier bucket, summed over steps. */
  int64_t stalled_nbytes;
  int64_t pool_grow_count; /**< Times that the gradient pool grew beyond its first size. */
  int64_t overlap_active;  /**< 1 if a progress thread reduces while the caller works. */
} zero_step_stats;

/**
 * Sets every field to zero, and struct_size to the given size.
 *
 * @param[out] out          The struct.
 * @param[in]  struct_size  sizeof(zero_step_stats) as the caller knows it.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_step_stats_init(zero_step_stats *out, uint64_t struct_size);

/**
 * Returns time and stalls of an optimizer.
 *
 * @param[in]     optimizer  The optimizer.
 * @param[in,out] out        struct_size set by the caller.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_optimizer_step(const zero_optimizer *optimizer, zero_step_stats *out);

/**
 * Returns a text about the library: version, ABI, kernel targets, modules found.
 *
 * @param[out] out         Receives the text, always terminated, cut to fit; may be NULL if
 *                         out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at out, >= 0.
 * @param[out] out_needed  Bytes that the whole text needs, its NUL included; may be NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_describe_library(char *out, int64_t out_nbytes, int64_t *out_needed);
/**
 * Returns a text about a group: the choices and their reasons, for example the transport and the
 * ranks of the host.
 *
 * @param[in]  group       The group.
 * @param[out] out         Receives the text, always terminated, cut to fit; may be NULL if
 *                         out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at out, >= 0.
 * @param[out] out_needed  Bytes that the whole text needs, its NUL included; may be NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_describe_group(const zero_group *group, char *out, int64_t out_nbytes,
                                     int64_t *out_needed);
/**
 * Returns a text about an optimizer: the choices and their reasons (transport, kernel target,
 * threads, overlap, buckets, memory formula).
 *
 * @param[in]  optimizer   The optimizer.
 * @param[out] out         Receives the text, always terminated, cut to fit; may be NULL if
 *                         out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at out, >= 0.
 * @param[out] out_needed  Bytes that the whole text needs, its NUL included; may be NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_describe_optimizer(const zero_optimizer *optimizer, char *out,
                                         int64_t out_nbytes, int64_t *out_needed);

/**
 * Returns the work of the optimizer on this rank over time, as JSON in the Chrome trace format. It
 * holds the newest ZERO_KEY_TRACE_EVENTS events since seal. ui.perfetto.dev and chrome://tracing
 * show it.
 *
 * Tracks are gradients given, operations (acquires, parts of steps), reductions, and gathers (ahead
 * of acquires or behind steps). Times are those of the host's monotonic clock. The traces of a
 * host's ranks therefore fit together if their "traceEvents" are joined.
 *
 * Call it between steps: later events change the bytes that are needed.
 *
 * @param[in]  optimizer   The optimizer.
 * @param[out] out         Receives the text, always terminated, cut to fit; may be NULL if
 *                         out_nbytes is 0.
 * @param[in]  out_nbytes  Bytes at out, >= 0.
 * @param[out] out_needed  Bytes that the whole text needs, its NUL included; may be NULL.
 * @return ZERO_OK. ZERO_E_STATE before zero_optimizer_seal(), or if ZERO_KEY_TRACE_EVENTS is 0.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_stats_optimizer_trace(const zero_optimizer *optimizer, char *out,
                                            int64_t out_nbytes, int64_t *out_needed);

#ifdef __cplusplus
}
#endif

#endif
