/* @file Implements caller_device.h over CUDA, for tests on machines that have a device. */
#include "tests/memory/caller_device.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <unistd.h>

static void must(cudaError_t error) {
  if (error != cudaSuccess) abort();
}

static void be_late(void *microseconds) { usleep((useconds_t)(intptr_t)microseconds); }

const char *caller_module(void) { return ""; }

const char *caller_missing(void) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error != cudaSuccess ? cudaGetErrorString(error) : "";
}

void *caller_alloc(int64_t device, int64_t nbytes) {
  void *data = NULL;
  must(cudaSetDevice((int)device));
  must(cudaMalloc(&data, (size_t)nbytes));
  return data;
}

void caller_free(void *data) { must(cudaFree(data)); }

void *caller_pinned_alloc(int64_t nbytes) {
  void *data = NULL;
  must(cudaMallocHost(&data, (size_t)nbytes));
  return data;
}

void caller_pinned_free(void *data) { must(cudaFreeHost(data)); }

void *caller_stream_create(int64_t device) {
  cudaStream_t stream = NULL;
  must(cudaSetDevice((int)device));
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void caller_stream_destroy(void *stream) { must(cudaStreamDestroy((cudaStream_t)stream)); }

void caller_copy(void *stream, void *to, const void *from, int64_t nbytes, int64_t late) {
  if (late > 0) must(cudaLaunchHostFunc((cudaStream_t)stream, be_late, (void *)(intptr_t)late));
  must(cudaMemcpyAsync(to, from, (size_t)nbytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

void caller_wait(void *stream) { must(cudaStreamSynchronize((cudaStream_t)stream)); }

static void hold(void *until) {
  while (__atomic_load_n((const int32_t *)until, __ATOMIC_ACQUIRE) == 0) usleep(50);
}

void caller_hold(void *stream, const int32_t *until) { must(cudaLaunchHostFunc((cudaStream_t)stream, hold, (void *)until)); }

void caller_capture_begin(void *stream) { must(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeGlobal)); }

struct captured {
  cudaGraphExec_t runnable;
  size_t nodes;
};

void *caller_capture_end(void *stream) {
  cudaGraph_t graph = NULL;
  struct captured made = {NULL, 0};
  struct captured *kept = NULL;
  cudaError_t error = cudaStreamEndCapture((cudaStream_t)stream, &graph);
  if (error == cudaSuccess) error = cudaGraphGetNodes(graph, NULL, &made.nodes);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&made.runnable, graph, 0);
  if (graph != NULL) must(cudaGraphDestroy(graph));
  if (error == cudaSuccess) kept = malloc(sizeof made);
  if (kept != NULL) *kept = made;
  (void)cudaGetLastError();
  return kept;
}

int64_t caller_graph_nodes(const void *graph) { return (int64_t)((const struct captured *)graph)->nodes; }

void caller_replay(void *graph, void *stream) { must(cudaGraphLaunch(((const struct captured *)graph)->runnable, (cudaStream_t)stream)); }

void caller_graph_destroy(void *graph) {
  must(cudaGraphExecDestroy(((struct captured *)graph)->runnable));
  free(graph);
}
