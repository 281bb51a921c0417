/// @file libzero_cuda.so: CUDA's run time behind the table of zero_cuda_module.h. The only file beside kernels/cuda/launch.h that includes
/// CUDA's headers; no policy, no state.
#include "zero_cuda_module.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/* A call that fails leaves its error for cudaGetLastError, where the program would take it for one of its own. */
static int32_t settle(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return (int32_t)error;
}

/* Makes a device the thread's current one until leave(). */
static cudaError_t enter(int64_t device, int *before) {
  cudaError_t error = cudaGetDevice(before);
  if (error == cudaSuccess && *before != (int)device) error = cudaSetDevice((int)device);
  return error;
}

static int32_t leave(cudaError_t error, int64_t device, int before) {
  if (before >= 0 && before != (int)device) {
    const cudaError_t left = cudaSetDevice(before);
    if (error == cudaSuccess) error = left;
  }
  return settle(error);
}

static void module_error_text(int32_t error, char *out, int64_t out_nbytes) {
  const cudaError_t code = (cudaError_t)error;
  snprintf(out, (size_t)out_nbytes, "%s (%s)", cudaGetErrorString(code), cudaGetErrorName(code));
}

static int32_t module_device_count(int64_t *out) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return settle(error);
  *out = count;
  return count > 0 ? 0 : (int32_t)cudaErrorNoDevice;
}

static int32_t module_device_name(int64_t device, char *out, int64_t out_nbytes) {
  struct cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, (int)device);
  if (error != cudaSuccess) return settle(error);
  snprintf(out, (size_t)out_nbytes, "%s", properties.name);
  return 0;
}

static int32_t module_memory_device(const void *address, int64_t *out) {
  struct cudaPointerAttributes attributes;
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error != cudaSuccess) return settle(error);
  *out = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged ? attributes.device : -1;
  return 0;
}

static int32_t module_stream_device(void *stream, int64_t *out) {
  int device = 0;
  const cudaError_t error = cudaStreamGetDevice((cudaStream_t)stream, &device);
  if (error == cudaSuccess) *out = device;
  return settle(error);
}

static int32_t module_pinned_alloc(int64_t device, int64_t nbytes, void **out) {
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaHostAlloc(out, (size_t)nbytes, cudaHostAllocPortable);
  return leave(error, device, before);
}

static int32_t module_pinned_free(void *data) { return settle(cudaFreeHost(data)); }

static int32_t module_stream_create(int64_t device, void **out) {
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking);
  return leave(error, device, before);
}

static int32_t module_stream_destroy(void *stream) { return settle(cudaStreamDestroy((cudaStream_t)stream)); }

static int32_t module_stream_wait(void *stream) { return settle(cudaStreamSynchronize((cudaStream_t)stream)); }

static int32_t module_stream_captures(void *stream, int32_t *out) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing((cudaStream_t)stream, &status);
  *out = status != cudaStreamCaptureStatusNone;
  return settle(error);
}

static int32_t module_copy(void *out, const void *from, int64_t nbytes, void *stream) {
  return settle(cudaMemcpyAsync(out, from, (size_t)nbytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

static int32_t module_event_create(int64_t device, void **out) {
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags((cudaEvent_t *)out, cudaEventDisableTiming);
  return leave(error, device, before);
}

static int32_t module_event_destroy(void *event) { return settle(cudaEventDestroy((cudaEvent_t)event)); }

static int32_t module_event_record(int64_t device, void *event, void *stream) {
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream);
  return leave(error, device, before);
}

static int32_t module_event_wait(void *event) { return settle(cudaEventSynchronize((cudaEvent_t)event)); }

static int32_t module_event_ended(void *event, int32_t *out) {
  const cudaError_t error = cudaEventQuery((cudaEvent_t)event);
  *out = error == cudaSuccess;
  return error == cudaErrorNotReady ? settle(error), 0 : settle(error);
}

static int32_t module_stream_follow(int64_t device, void *stream, void *event) {
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0);
  return leave(error, device, before);
}

static int32_t module_device_alloc(int64_t device, int64_t nbytes, void **out) {
  int before = -1;
  void *data = NULL;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaMalloc(&data, (size_t)nbytes);
  if (error == cudaSuccess) error = cudaMemset(data, 0, (size_t)nbytes);
  if (error == cudaSuccess) error = cudaStreamSynchronize(NULL); /* cudaMemset need not wait */
  if (error == cudaSuccess) {
    *out = data;
  } else {
    (void)cudaFree(data);
  }
  return leave(error, device, before);
}

static int32_t module_device_free(void *data) { return settle(cudaFree(data)); }

/* Unlike copies, this wants the stream's device to be the current one. */
static int32_t module_clear(void *data, int64_t nbytes, void *stream) {
  int64_t device = -1;
  int before = -1;
  const int32_t found = module_stream_device(stream, &device);
  if (found != 0) return found;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaMemsetAsync(data, 0, (size_t)nbytes, (cudaStream_t)stream);
  return leave(error, device, before);
}

static int32_t module_reach(int64_t device, int64_t peer) {
  if (device == peer) return 0;
  int before = -1;
  cudaError_t error = enter(device, &before);
  if (error == cudaSuccess) error = cudaDeviceEnablePeerAccess((int)peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  return leave(error, device, before);
}

static int32_t module_enter(int64_t device, int64_t *out_before) {
  int before = -1;
  const cudaError_t error = enter(device, &before);
  *out_before = before;
  return settle(error);
}

static int32_t module_leave(int64_t before) { return settle(cudaSetDevice((int)before)); }

/* kernels/cuda/table.cu */
extern const struct zero_cuda_kernels zero_cuda_kernels;

__attribute__((visibility("default"))) const zero_cuda_table *zero_cuda_module(void);
const zero_cuda_table *zero_cuda_module(void) {
  static const zero_cuda_table table = {
      .struct_size = sizeof(zero_cuda_table),
      .build = ZERO_CUDA_BUILD,
      .error_text = module_error_text,
      .device_count = module_device_count,
      .device_name = module_device_name,
      .memory_device = module_memory_device,
      .stream_device = module_stream_device,
      .pinned_alloc = module_pinned_alloc,
      .pinned_free = module_pinned_free,
      .stream_create = module_stream_create,
      .stream_destroy = module_stream_destroy,
      .stream_wait = module_stream_wait,
      .stream_captures = module_stream_captures,
      .copy = module_copy,
      .event_create = module_event_create,
      .event_destroy = module_event_destroy,
      .event_record = module_event_record,
      .event_wait = module_event_wait,
      .event_ended = module_event_ended,
      .stream_follow = module_stream_follow,
      .device_alloc = module_device_alloc,
      .device_free = module_device_free,
      .clear = module_clear,
      .reach = module_reach,
      .enter = module_enter,
      .leave = module_leave,
      .kernels = &zero_cuda_kernels,
  };
  return &table;
}
