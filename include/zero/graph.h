/*
 * Steps that nobody waits for, and steps in CUDA graphs: optimizers with ZERO_TIER_DEVICE, without a model group.
 *
 * In a world of one a zero_optimizer_step (or reduce) whose out_result is NULL returns when its work has been given to the device, which
 * decides by itself: whether gradients are finite, their norm, what they are multiplied by, the next loss scale, the number of the step.
 * The bits are those of steps with a result. zero_optimizer_result waits and tells what came out; so do the calls that read or set scalars
 * of the run.
 *
 * So does a step of ranks that are threads of one process, whose devices reach each other's memory, in stage 1 with ZERO_KEY_OVERLAP 0:
 * its threads meet and compare their hyper-parameters, then each gives its device the work, and the devices wait for one another. Not with
 * LAMB, ZERO_DIVISOR_WEIGHTS or ZERO_KEY_VERIFY_EVERY, and not after micro-steps that were reduced: such steps, all others of several
 * ranks, and reduce by itself, wait for devices. So does the step after scalars of the run were set, in which ranks compare them.
 *
 * Steps of a world of one can be captured (cudaStreamBeginCapture and cudaStreamEndCapture around them) and the graph run as often as the
 * caller likes, each time as one more step. The caller's part:
 *   - Before the capture, a step of the same kind: the same tensors filled, the same micro-steps. A captured step of another kind may make
 *     the optimizer unusable (ZERO_E_STATE).
 *   - In the capture, calls with the captured stream, which CUDA does not let the library check for its device: grad_ready with memory of
 *     the device, or of grad_acquire, then step with out_result NULL (or reduce, apply, gather), which comes last; param_acquire and
 *     param_release may be there too (of 8-bit parameters with dst on the device, into which each run decodes them; otherwise
 *     ZERO_E_STATE). Gradients from memory of the host, and dst there, are ZERO_E_STATE: each run would copy what lies there then. So are
 *     gradients and dst on the device with ZERO_TIER_HOST. A call that has to wait, or to make memory, is an error, which may end the
 *     capture and cost the optimizer: read, write, begin, init_param, and those that read scalars of the run.
 *   - Between runs, hyper-parameters may be set at any time, and zero_optimizer_refresh brings them to the runs that follow, in the order
 *     of its stream; but a graph keeps its ZERO_KEY_NEWTON_SCHULZ_STEPS.
 *   - After a run, zero_optimizer_result with its stream comes before all other calls: before scalars of the run are read or set (the loss
 *     scale, set_i64; then refresh comes before the next run), plain steps, read, write. It also tells a dynamic loss scale, which kernels
 *     find at zero_optimizer_loss_scale_address.
 *     Counters of the host (stats.h) know nothing of runs of graphs, and neither does unfilled_count of results.
 *   - Graphs are run one after another, and never once the optimizer was released. A plain step that fills other tensors than the captured
 *     one makes a table of its own on the device, the first one behind each such capture; it stays until release.
 * Captured steps of several ranks are ZERO_E_UNSUPPORTED, since their threads meet, and so is their captured grad_ready. With
 * ZERO_KEY_VERIFY_EVERY steps that take or compare checksums wait, and captured ones are ZERO_E_UNSUPPORTED. A step that is captured with
 * out_result, or before any other step, is ZERO_E_STATE, and so is a captured verify; the capture goes on without it.
 *
 * Streams that another thread captures, in whichever mode, do not hinder what the library does, and its threads do not end their capture;
 * but work for the default stream (NULL) may do either, because CUDA makes that wait for other streams.
 */
#ifndef ZERO_GRAPH_H
#define ZERO_GRAPH_H

#include <zero/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The outcome of the newest step, or of the reduce under way. Waits for it. With every optimizer: where steps have waited themselves it is
 * what they told.
 *   stream      [in]      what was given to it comes first: steps, graphs
 *   out_result  [in, out] struct_size set by the caller
 * Not a collective. Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE (before begin; while the stream is captured),
 * ZERO_E_DEVICE_FAILED. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_result(zero_optimizer *optimizer, void *stream, zero_step_result *out_result);

/*
 * What hyper-parameters and scalars of the run are now is what captured steps compute with that `stream` is given from now on. Does not
 * wait. Steps that are not captured need no such call.
 * Not a collective. Errors: ZERO_E_BAD_HANDLE, ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE (before begin or between reduce and gather; while the
 * stream is captured), ZERO_E_DEVICE_FAILED. Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_refresh(zero_optimizer *optimizer, void *stream);

/*
 * Where the loss scale is that gradients of the next step are to have in them: kernels that multiply the loss read it there, also as part
 * of a graph, and follow a dynamic loss scale while nobody waits.
 *   stream      [in]  what it is given next sees the scale as it is now; the stream of a step, or of a graph's run, sees the one after it
 *   out_address [out] of a double, on ZERO_KEY_DEVICE with ZERO_TIER_DEVICE, otherwise on the host; only to be read, on the host between
 *                     calls; it is valid until the optimizer is released
 * A scale that was set since is there after the next zero_optimizer_refresh. Not a collective. Errors: ZERO_E_BAD_HANDLE,
 * ZERO_E_INVALID_ARGUMENT, ZERO_E_STATE (before begin or between reduce and gather; while the stream is captured), ZERO_E_DEVICE_FAILED.
 * Since ZERO_0.1.
 */
ZERO_API int32_t zero_optimizer_loss_scale_address(zero_optimizer *optimizer, void *stream, void **out_address);

#ifdef __cplusplus
}
#endif

#endif
