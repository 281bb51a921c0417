/*
 * Requests: the begin/test form of blocking calls. Every function that may wait for other ranks has a twin whose name ends in _async: it
 * takes the same arguments, returns at once and hands out a request. An error that it returns itself has begun nothing; all others, such as
 * those of a wrong phase or of a tensor that is not there, come with the request, because they are known when its turn has come. Memory
 * given to it stays borrowed until the request is done. What has begun moves on only in calls on its own group, or while a progress thread
 * watches it: who waits for something else lets the other ranks wait for it too. Without a twin are zero_optimizer_grad_acquire and
 * zero_optimizer_grad_ready, which wait at most for a reduction that is under way, zero_optimizer_init_param, which waits for parameters of
 * the last step that still travel, calls that wait for a device (zero_optimizer_result, and those that read or set scalars), and releases.
 */
#ifndef ZERO_REQUEST_H
#define ZERO_REQUEST_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zero_request zero_request;
typedef struct zero_group zero_group;
typedef struct zero_buffer zero_buffer;

/*
 * Makes progress without waiting and tells whether the operation has ended.
 *   request   [in]
 *   out_done  [out] 1 when it has ended, otherwise 0
 * Returns the operation's own status once it has ended, ZERO_OK before. Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, and any error
 * of the operation (out_done is then 1). Threads: one thread per request at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_request_test(zero_request *request, int64_t *out_done);

/*
 * Waits until the operation has ended, at most until its deadline, and returns its status.
 * Errors: as zero_request_test. Threads: one thread per request at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_request_wait(zero_request *request);

/*
 * Takes the group out of a finished request made by zero_group_create_..._async or zero_group_split_async.
 *   out  [out] the group, now the caller's; NULL from a split with a negative color
 * Errors: ZERO_E_STATE when the request has not ended, makes no group, or the group was taken before; the operation's own error when it
 * failed. Threads: one thread per request at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_request_group(zero_request *request, zero_group **out);

/*
 * Takes the buffer out of a finished request made by zero_buffer_create_async. As zero_request_group otherwise.
 *   out  [out] the buffer, now the caller's
 * Threads: one thread per request at a time. Since ZERO_0.1.
 */
ZERO_API int32_t zero_request_buffer(zero_request *request, zero_buffer **out);

/*
 * Gives the handle back. An operation that has not ended is waited for first (at most until its deadline), because its memory is still
 * borrowed. NULL is allowed. Threads: any. Since ZERO_0.1.
 */
ZERO_API void zero_request_release(zero_request *request);

#ifdef __cplusplus
}
#endif

#endif
