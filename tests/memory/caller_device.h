/* @file A device as used by programs that call libzero with their own memory. Two libraries have
   these functions: one for CUDA, one that emulates it on the host (emulated_cuda.h). */
#ifndef ZERO_TESTS_CALLER_DEVICE_H
#define ZERO_TESTS_CALLER_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Path of the libzero_cuda.so for this device; "" = the one that libzero finds. */
const char *caller_module(void);
/* The reason why there is no device here; "" if there is one. */
const char *caller_missing(void);

/* Memory that the host must not access. */
void *caller_alloc(int64_t device, int64_t nbytes);
void caller_free(void *data);

/* Pinned host memory. */
void *caller_pinned_alloc(int64_t nbytes);
void caller_pinned_free(void *data);

void *caller_stream_create(int64_t device);
void caller_stream_destroy(void *stream);
/* Enqueues a copy in either direction, `late` microseconds after earlier work of the stream. Host
   memory must stay valid until caller_wait. */
void caller_copy(void *stream, void *to, const void *from, int64_t nbytes, int64_t late);
void caller_wait(void *stream);
/* Blocks the stream until *until is not 0. */
void caller_hold(void *stream, const int32_t *until);

/* Work that is enqueued between both calls becomes a graph instead of running. Returns NULL if it
   could not. */
void caller_capture_begin(void *stream);
void *caller_capture_end(void *stream);
/* Number of kernels, copies and clears in the graph. */
int64_t caller_graph_nodes(const void *graph);
/* Runs the graph in the stream. */
void caller_replay(void *graph, void *stream);
void caller_graph_destroy(void *graph);

#ifdef __cplusplus
}
#endif

#endif
