/* @file A device as programs use it that call libzero with memory of their own there. Two libraries have these functions: one for CUDA, one
 * that emulates it on the host (emulated_cuda.h). */
#ifndef ZERO_TESTS_CALLER_DEVICE_H
#define ZERO_TESTS_CALLER_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Path of the libzero_cuda.so that reaches this device; "" = the one that libzero finds. */
const char *caller_module(void);
/* Why there is no device here; "" when there is one. */
const char *caller_missing(void);

/* Memory that the host must not touch. */
void *caller_alloc(int64_t device, int64_t nbytes);
void caller_free(void *data);

/* Memory of the host that copies reach at full speed. */
void *caller_pinned_alloc(int64_t nbytes);
void caller_pinned_free(void *data);

void *caller_stream_create(int64_t device);
void caller_stream_destroy(void *stream);
/* The stream copies either way, so many microseconds after what it was given before. Memory of the host stays in place until caller_wait.
 */
void caller_copy(void *stream, void *to, const void *from, int64_t nbytes, int64_t late);
void caller_wait(void *stream);
/* The stream goes on when *until is not 0. */
void caller_hold(void *stream, const int32_t *until);

/* What the stream is given between both becomes a graph instead of being done. NULL: it could not. */
void caller_capture_begin(void *stream);
void *caller_capture_end(void *stream);
/* Kernels, copies and clears in it. */
int64_t caller_graph_nodes(const void *graph);
/* The stream does all of it. */
void caller_replay(void *graph, void *stream);
void caller_graph_destroy(void *graph);

#ifdef __cplusplus
}
#endif

#endif
