/**
 * @file
 * A stop that all ranks agree on: any rank may ask, and all ranks end their run after the same
 * step.
 *
 * @code
 * static zero_optimizer *training;
 * static void on_term(int number) { zero_optimizer_request_stop(training, number); }
 * ...
 * signal(SIGTERM, on_term);
 * do {
 *   ...                                                  // gradients of a batch
 *   zero_optimizer_step(training, NULL, &result);
 * } while (result.stop_reason == 0);
 * zero_optimizer_save(training, folder, NULL);
 * @endcode
 */
#ifndef ZERO_STOP_H
#define ZERO_STOP_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Asks all ranks to stop, for example before a job is pre-empted.
 *
 * The next step or reduce of this rank carries the request to all ranks. All ranks find the largest
 * reason in the result of that step, whether it is applied or skipped, and the step clears the
 * request. If the caller asks for no result, zero_optimizer_result() still returns the reason. A
 * larger reason that arrives during the step is reported by the next one. A step that fails reports
 * nothing. The library itself stops nothing.
 *
 * The function may be called in a signal handler, which may interrupt any call. For that reason its
 * errors have no text, and zero_last_error_copy() keeps the text it had. Not a collective.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] reason     Above 0; the program gives the numbers their meaning.
 * @return ZERO_OK, ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT or ZERO_E_FORKED. ZERO_E_UNSUPPORTED
 *   once a step was captured into a CUDA graph (graph.h), because runs of a graph do not look at
 *   the host. A capture while a request waits returns ZERO_E_UNSUPPORTED too.
 * @note Threads: any, also while a call or a request is in progress.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_request_stop(zero_optimizer *optimizer, int64_t reason);

#ifdef __cplusplus
}
#endif

#endif
