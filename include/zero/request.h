/**
 * @file
 * Requests: the begin/test form of blocking calls.
 *
 * @code
 * zero_request *request;
 * int64_t done = 0;
 * zero_optimizer_step_async(optimizer, NULL, &result, &request);
 * while (!done) {
 *   load_next_batch();                                   // work of the program's own
 *   if (zero_request_test(request, &done) != ZERO_OK) break;
 * }
 * zero_request_release(request);
 * @endcode
 *
 * Every function that may wait for other ranks has a twin whose name ends in _async. The twin takes
 * the same arguments, returns at once, and returns a request in `out`.
 *
 * - If the twin itself returns an error, nothing has begun. The request returns all other errors,
 *   such as those of a wrong phase or of an unknown tensor. They are known only when its turn has
 *   come.
 * - Memory given to the twin stays borrowed until the request is done.
 * - A request makes progress only inside calls on its group, or while a progress thread watches it.
 *   While you block elsewhere, your peers wait; poll the request.
 *
 * Functions without a twin:
 * - zero_optimizer_grad_acquire() and zero_optimizer_grad_ready() wait at most for a reduction in
 *   progress.
 * - zero_optimizer_init_param() waits for parameters of the last step that still travel.
 * - Calls that wait for a device: zero_optimizer_result(), and functions that read or set scalars.
 * - Releases.
 */
#ifndef ZERO_REQUEST_H
#define ZERO_REQUEST_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An operation that has begun; the caller gives it back with zero_request_release(). */
typedef struct zero_request zero_request;
/** A process group (group.h). */
typedef struct zero_group zero_group;
/** A sharded buffer (buffer.h). */
typedef struct zero_buffer zero_buffer;

/**
 * Makes progress without waiting, and reports whether the operation has ended.
 *
 * @param[in]  request   The request.
 * @param[out] out_done  1 if the operation has ended, otherwise 0.
 * @return ZERO_OK until the operation has ended; then its own status, and after any error out_done
 *         is 1. ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT. Threads: one thread per request at a
 *         time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_request_test(zero_request *request, int64_t *out_done);

/**
 * Waits until the operation has ended, at most until its deadline, and returns its status.
 *
 * @param[in] request  The request.
 * @return As zero_request_test(). Threads: one thread per request at a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_request_wait(zero_request *request);

/**
 * Takes the group out of a finished request that zero_group_create_..._async() or
 * zero_group_split_async() returned.
 *
 * @param[in]  request  The request.
 * @param[out] out      The group, now owned by the caller; NULL from a split with a negative color.
 * @return ZERO_OK. ZERO_E_STATE if the request has not ended, makes no group, or the group was
 *         taken before. The operation's own error if it failed. Threads: one thread per request at
 *         a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_request_group(zero_request *request, zero_group **out);

/**
 * Takes the buffer out of a finished request that zero_buffer_create_async() returned. Otherwise as
 * zero_request_group().
 *
 * @param[in]  request  The request.
 * @param[out] out      The buffer, now owned by the caller.
 * @return As zero_request_group(). Threads: one thread per request at a time.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_request_buffer(zero_request *request, zero_buffer **out);

/**
 * Releases the handle; NULL is allowed. If the operation has not ended, the call first waits for it
 * (at most until its deadline), because its memory is still borrowed. Threads: any.
 *
 * @param[in] request  The request, or NULL.
 * @since ZERO_0.1
 */
ZERO_API void zero_request_release(zero_request *request);

#ifdef __cplusplus
}
#endif

#endif
