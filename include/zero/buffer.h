/**
 * @file
 * Sharded buffers: a flat array of `count` elements whose shards are held by the ranks of a group.
 *
 * @code
 * zero_buffer *buffer;
 * void *shard, *whole;
 * int64_t offset, shard_count;
 * zero_buffer_create(group, NULL, ZERO_DTYPE_F32, count, &buffer);
 * zero_buffer_reduce_scatter(buffer, contribution, count, ZERO_REDUCE_SUM, NULL);
 * zero_buffer_shard(buffer, &shard, &offset, &shard_count);              // my part of the sums
 * zero_buffer_whole_acquire(buffer, NULL, &whole);                       // all parts, gathered
 * zero_buffer_whole_release(buffer);
 * zero_buffer_release(buffer);
 * @endcode
 *
 * Shards begin and end at multiples of 256 elements. Shard sizes follow ZERO_KEY_SHARD_WEIGHTS
 * (equal by default), and a shard may be empty.
 *
 * **Collectives.** All functions except shard, whole_release and release are collectives over the
 * group. Every rank calls them in the same order and, if the group has several buffers, on the same
 * buffer (ZERO_E_MISMATCH).
 *
 * **Errors of all functions.** ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE, and the
 * errors of the group, ZERO_E_TIMEOUT .. ZERO_E_TRANSPORT. ZERO_E_UNSUPPORTED if `stream` is not
 * NULL: shards, and memory given to buffers, are host memory, also in groups that reach devices.
 *
 * **Threads.** One thread per buffer at a time, unless a function says otherwise.
 */
#ifndef ZERO_BUFFER_H
#define ZERO_BUFFER_H

#include <zero/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a buffer; all elements are zero. dtype, count and weights must agree on all ranks.
 *
 * @param[in]  group   The group; the buffer keeps it alive.
 * @param[in]  config  ZERO_KEY_SHARD_WEIGHTS and the memory hook are read; or NULL.
 * @param[in]  dtype   A zero_dtype.
 * @param[in]  count   Elements in all, 0 .. 2^56.
 * @param[out] out     The buffer, owned by the caller.
 * @return ZERO_OK. ZERO_E_MISMATCH if ranks disagree. ZERO_E_OUT_OF_MEMORY; the other ranks then
 *         return ZERO_E_PEER_FAILED, and the group stays usable.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_create(zero_group *group, const zero_config *config, int32_t dtype,
                                    int64_t count, zero_buffer **out);
/** Begins zero_buffer_create(); zero_request_buffer() returns the buffer. @since ZERO_0.1 */
ZERO_API int32_t zero_buffer_create_async(zero_group *group, const zero_config *config,
                                          int32_t dtype, int64_t count, zero_request **out);

/**
 * Returns this rank's shard: its memory, which lives as long as the buffer, and the range of the
 * whole that it holds. Not a collective.
 *
 * @param[in]  buffer      The buffer.
 * @param[out] out_data    Aligned to 64 bytes; NULL if out_count is 0.
 * @param[out] out_offset  The first element.
 * @param[out] out_count   The number of elements.
 * @return ZERO_OK or an error of all functions. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_shard(const zero_buffer *buffer, void **out_data, int64_t *out_offset,
                                   int64_t *out_count);

/**
 * Gathers the whole and returns an address of `count` elements, valid until
 * zero_buffer_whole_release(). Values written there are not kept.
 *
 * @param[in]  buffer    The buffer.
 * @param[in]  stream    NULL.
 * @param[out] out_data  Aligned to 64 bytes; NULL if the buffer has no elements.
 * @return ZERO_OK. ZERO_E_STATE if the whole is acquired already. ZERO_E_OUT_OF_MEMORY.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_whole_acquire(zero_buffer *buffer, void *stream, void **out_data);
/** Begins zero_buffer_whole_acquire() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_buffer_whole_acquire_async(zero_buffer *buffer, void *stream,
                                                 void **out_data, zero_request **out);

/**
 * Releases the address of the whole. Not a collective.
 *
 * @param[in] buffer  The buffer.
 * @return ZERO_OK; ZERO_E_STATE if the whole is not acquired.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_whole_release(zero_buffer *buffer);

/**
 * Sets the shards to op over ranks of the contributions. The sum tree and the rounding are those of
 * group.h.
 *
 * @param[in] buffer  The buffer.
 * @param[in] data    This rank's contribution to the whole.
 * @param[in] count   The number of elements of the buffer.
 * @param[in] op      A zero_reduce.
 * @param[in] stream  NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_reduce_scatter(zero_buffer *buffer, const void *data, int64_t count,
                                            int32_t op, void *stream);
/** Begins zero_buffer_reduce_scatter() and returns a request in `out`. @since ZERO_0.1 */
ZERO_API int32_t zero_buffer_reduce_scatter_async(zero_buffer *buffer, const void *data,
                                                  int64_t count, int32_t op, void *stream,
                                                  zero_request **out);

/**
 * Reads elements [offset, offset + count) of the whole, whichever rank owns them. A collective:
 * each rank gives its own range, which may be empty.
 *
 * @param[in]  buffer  The buffer.
 * @param[in]  offset  The first element.
 * @param[out] data    Receives the elements; may be NULL if count is 0.
 * @param[in]  count   The number of elements; the range must be within the buffer.
 * @param[in]  stream  NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_read(zero_buffer *buffer, int64_t offset, void *data, int64_t count,
                                  void *stream);
/** Begins zero_buffer_read() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_buffer_read_async(zero_buffer *buffer, int64_t offset, void *data,
                                        int64_t count, void *stream, zero_request **out);
/**
 * Writes elements [offset, offset + count) of the whole, whichever rank owns them. A collective:
 * each rank gives its own range, which may be empty. If ranges of several ranks overlap, the values
 * of the highest rank stay.
 *
 * @param[in] buffer  The buffer.
 * @param[in] offset  The first element.
 * @param[in] data    The elements; may be NULL if count is 0.
 * @param[in] count   The number of elements; the range must be within the buffer.
 * @param[in] stream  NULL.
 * @return ZERO_OK or an error of all functions.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_buffer_write(zero_buffer *buffer, int64_t offset, const void *data,
                                   int64_t count, void *stream);
/** Begins zero_buffer_write() and returns a request in `out` (request.h). @since ZERO_0.1 */
ZERO_API int32_t zero_buffer_write_async(zero_buffer *buffer, int64_t offset, const void *data,
                                         int64_t count, void *stream, zero_request **out);

/**
 * Releases the handle; NULL is allowed. Not a collective. Threads: any.
 *
 * @param[in] buffer  The buffer, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_buffer_release(zero_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
