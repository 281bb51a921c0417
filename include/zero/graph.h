/**
 * @file
 * Steps that do not wait for the device, and steps in CUDA graphs: optimizers with ZERO_TIER_DEVICE
 * and without a model-parallel group.
 *
 * @code
 * zero_optimizer_step(optimizer, stream, NULL);                      // one step before the capture
 * cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
 * zero_optimizer_grad_ready(optimizer, w, device_gradient, 0, count, stream);
 * zero_optimizer_step(optimizer, stream, NULL);
 * cudaStreamEndCapture(stream, &graph);                              // then cudaGraphInstantiate
 * zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, rate);
 * zero_optimizer_refresh(optimizer, stream);                         // later runs use that rate
 * cudaGraphLaunch(runnable, stream);
 * zero_optimizer_result(optimizer, stream, &result);                 // waits
 * @endcode
 *
 * **Steps without a result, world of one.** A zero_optimizer_step() or zero_optimizer_reduce()
 * whose out_result is NULL returns when its work was given to the device. The device then decides
 * by itself whether gradients are finite. It also computes their norm, their factor, the next loss
 * scale and the number of the step. The bits are those of steps with a result.
 * zero_optimizer_result() waits and returns the outcome; calls that read or set scalars of the run
 * wait too.
 *
 * **Several ranks.** Their steps wait on the host for what devices were given, with or without
 * out_result.
 *
 * **CUDA graphs.** Steps of a world of one can be captured (between cudaStreamBeginCapture and
 * cudaStreamEndCapture). The graph can be run any number of times, each time as one more step.
 *
 * Before the capture, run one identical step: the same tensors filled, the same micro-steps. A
 * captured step of another kind may make the optimizer unusable (ZERO_E_STATE).
 *
 * In the capture, make calls with the captured stream. CUDA does not let the library check the
 * device of that stream.
 * - Call grad_ready with memory of the device, or of grad_acquire.
 * - Call step with out_result NULL last, or reduce, apply and gather.
 * - param_acquire and param_release are allowed too. 8-bit parameters need dst on the device, into
 *   which each run decodes them; otherwise the call returns ZERO_E_STATE.
 * - Gradients in host memory, and dst there, are ZERO_E_STATE, because each run would copy the
 *   values present at that time. With ZERO_TIER_HOST, gradients and dst on the device are
 *   ZERO_E_STATE too.
 * - A call that must wait or allocate memory is an error, which may end the capture and make the
 *   optimizer unusable. Such calls are read, write, begin, init_param, and calls that read scalars
 *   of the run.
 *
 * Between runs, hyper-parameters may be set at any time. zero_optimizer_refresh() applies them to
 * the runs that follow, in the order of its stream. A graph keeps its ZERO_KEY_NEWTON_SCHULZ_STEPS.
 *
 * After a run, call zero_optimizer_result() with its stream before all other calls. These are plain
 * steps, read, write, and calls that read or set scalars of the run (the loss scale, set_i64).
 * After scalars were set, call refresh before the next run.
 * - The result also holds a dynamic loss scale, which kernels find at
 *   zero_optimizer_loss_scale_address().
 * - Counters of the host (stats.h) do not count runs of graphs, and neither does unfilled_count of
 *   results.
 *
 * Run graphs one after another, and never after the optimizer was released. A plain step that fills
 * other tensors than the captured one allocates a table of its own on the device. This is the first
 * such step after each capture, and the table stays until release.
 *
 * **Limits.**
 * - Captured steps of several ranks are ZERO_E_UNSUPPORTED, since their threads meet, and so is
 *   their captured grad_ready.
 * - With ZERO_KEY_VERIFY_EVERY, steps that take or compare checksums wait, and captured ones are
 *   ZERO_E_UNSUPPORTED.
 * - A step captured with out_result, or before any other step, is ZERO_E_STATE, and so is a
 *   captured verify. The capture continues without it.
 * - While a stop request waits, a captured step is ZERO_E_UNSUPPORTED. After a capture,
 *   zero_optimizer_request_stop() is (stop.h).
 *
 * **Captures of other threads.** A stream that another thread captures, in any mode, does not
 * hinder the library, and the library's threads do not end that capture. Work for the default
 * stream (NULL) may do either, because CUDA makes that stream wait for others.
 */
#ifndef ZERO_GRAPH_H
#define ZERO_GRAPH_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Waits for the newest step, or for the reduce in progress, and returns its outcome. It works with
 * every optimizer; if the steps have waited themselves, it returns their result again. Not a
 * collective.
 *
 * @param[in]     optimizer   The optimizer.
 * @param[in]     stream      The call waits for work that the stream was given before: steps,
 *                            graphs.
 * @param[in,out] out_result  struct_size set by the caller.
 * @return ZERO_OK. ZERO_E_BAD_HANDLE. ZERO_E_INVALID_ARGUMENT. ZERO_E_STATE before begin, and while
 *         the stream is captured. ZERO_E_DEVICE_FAILED.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_result(zero_optimizer *optimizer, void *stream,
                                       zero_step_result *out_result);

/**
 * Applies the present hyper-parameters and scalars of the run to captured steps that `stream` is
 * given from now on. Does not wait. Steps that are not captured need no such call. Not a
 * collective.
 *
 * @param[in] optimizer  The optimizer.
 * @param[in] stream     The stream of the runs that follow.
 * @return ZERO_OK. ZERO_E_BAD_HANDLE. ZERO_E_INVALID_ARGUMENT. ZERO_E_STATE before begin, between
 *         reduce and gather, and while the stream is captured. ZERO_E_DEVICE_FAILED.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_refresh(zero_optimizer *optimizer, void *stream);

/**
 * Returns the address of the loss scale that applies to the gradients of the next step. Kernels
 * that multiply the loss read it there, also as part of a graph. They so follow a dynamic loss
 * scale without any wait. Not a collective.
 *
 * A scale that was set since is there after the next zero_optimizer_refresh().
 *
 * @param[in]  optimizer    The optimizer.
 * @param[in]  stream       Work that it is given next sees the present scale. The stream of a step,
 *                          or of a run of a graph, sees the scale after that step.
 * @param[out] out_address  The address of a double: on ZERO_KEY_DEVICE with ZERO_TIER_DEVICE,
 *                          otherwise on the host. It is read-only, on the host between calls, and
 *                          valid until the optimizer is released.
 * @return ZERO_OK. ZERO_E_BAD_HANDLE. ZERO_E_INVALID_ARGUMENT. ZERO_E_STATE before begin, between
 *         reduce and gather, and while the stream is captured. ZERO_E_DEVICE_FAILED.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_optimizer_loss_scale_address(zero_optimizer *optimizer, void *stream,
                                                   void **out_address);

#ifdef __cplusplus
}
#endif

#endif
