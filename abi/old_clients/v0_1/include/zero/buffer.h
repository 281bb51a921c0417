/*
 * Sharded buffers: a flat array of `count` elements whose shards lie with the ranks of a group. Cuts fall on multiples of 256 elements;
 * shard sizes follow ZERO_KEY_SHARD_WEIGHTS (equal by default), and a shard may be empty.
 *
 * All functions but shard, whole_release and release are collectives over the group: every rank calls them in the same order, on the same
 * buffer where the group has several (ZERO_E_MISMATCH).
 * Common errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE, ZERO_E_UNSUPPORTED (`stream` must be NULL: shards and the memory
 * given to buffers lie on the host, also in groups that reach devices), and the group's errors ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT. Threads:
 * one thread per buffer at a time.
 */
#ifndef ZERO_BUFFER_H
#define ZERO_BUFFER_H

#include <zero/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a buffer; all elements are zero.
 *   config  [in]  or NULL; ZERO_KEY_SHARD_WEIGHTS and the memory hook are read
 *   dtype   [in]  a zero_dtype
 *   count   [in]  elements in all, 0 .. 2^56
 *   out     [out] the buffer, the caller's; it keeps the group alive
 * dtype, count and weights must agree on all ranks (ZERO_E_MISMATCH). Errors also: ZERO_E_OUT_OF_MEMORY (ZERO_E_PEER_FAILED on the others;
 * the group stays usable). Since ZERO_0.1.
 */
ZERO_API int32_t zero_buffer_create(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_buffer **out);
ZERO_API int32_t zero_buffer_create_async(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_request **out);

/*
 * My shard: its memory, which lives as long as the buffer, and the range of the whole that it holds. Not a collective.
 *   out_data    [out] aligned to 64 bytes; NULL when out_count is 0
 *   out_offset  [out] first element
 *   out_count   [out] elements
 * Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_buffer_shard(const zero_buffer *buffer, void **out_data, int64_t *out_offset, int64_t *out_count);

/*
 * Gathers the whole: an address of `count` elements, valid until zero_buffer_whole_release. What is written there is not kept.
 *   out_data  [out] aligned to 64 bytes; NULL when count is 0
 * Errors also: ZERO_E_STATE when it is acquired already, ZERO_E_OUT_OF_MEMORY. Since ZERO_0.1.
 */
ZERO_API int32_t zero_buffer_whole_acquire(zero_buffer *buffer, void *stream, void **out_data);
ZERO_API int32_t zero_buffer_whole_acquire_async(zero_buffer *buffer, void *stream, void **out_data, zero_request **out);

/* Gives the address of the whole back. Not a collective. Errors: ZERO_E_STATE when it is not acquired. Since ZERO_0.1. */
ZERO_API int32_t zero_buffer_whole_release(zero_buffer *buffer);

/*
 * Shards = op over ranks of the contributions (the sum tree and rounding are those of group.h).
 *   data, count  [in] this rank's contribution to the whole; count is the buffer's
 *   op           [in] a zero_reduce
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_buffer_reduce_scatter(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream);
ZERO_API int32_t zero_buffer_reduce_scatter_async(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream,
                                                  zero_request **out);

/*
 * Reads or writes elements [offset, offset + count) of the whole, whoever owns them. A collective: each rank gives its own range, which
 * may be empty. Where ranges written by several ranks overlap, the highest rank's values stay.
 *   offset, count  [in]  within the buffer
 *   data           [out, in] count elements; may be NULL when count is 0
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_buffer_read(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream);
ZERO_API int32_t zero_buffer_read_async(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream, zero_request **out);
ZERO_API int32_t zero_buffer_write(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream);
ZERO_API int32_t zero_buffer_write_async(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream,
                                         zero_request **out);

/* Gives the handle back; NULL is allowed. Not a collective. Threads: any. Since ZERO_0.1. */
ZERO_API void zero_buffer_release(zero_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
