/// @file libzero_cuda.so: CUDA's runtime behind the table of zero_cuda_module.h. Apart from
/// kernels/cuda/launch.h the only file that includes CUDA's headers. No policy, no state.
#include "zero_cuda_module.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/* Clears the error of a failed call, or the program would get it from cudaGetLastError. */
static int32_t settle(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return (int32_t)error;
}

/* kernels/cuda/context.c, table.cu */
int32_t zero_cuda_push(int64_t device, int32_t *out_pushed);
int32_t zero_cuda_pop(void);
int32_t zero_cuda_load_kernels(void);
extern const struct zero_cuda_kernels zero_cuda_kernels;

/* Sets a capture mode that ignores captures by other threads: otherwise an event query would
 * end them. */
static cudaError_t enter_in(enum cudaStreamCaptureMode mode, int64_t device, zero_cuda_visit *visit) {
  cudaError_t error = (cudaError_t)zero_cuda_push(device, &visit->pushed);
  visit->mode = -1;
  if (error == cudaSuccess) error = cudaThreadExchangeStreamCaptureMode(&mode);
  if (error == cudaSuccess) visit->mode = (int32_t)mode;
  return error;
}

static cudaError_t enter(int64_t device, zero_cuda_visit *visit) { return enter_in(cudaStreamCaptureModeThreadLocal, device, visit); }

static int32_t leave(cudaError_t error, const zero_cuda_visit *visit) {
  enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)visit->mode;
  cudaError_t left = cudaSuccess;
  if (visit->mode >= 0) left = cudaThreadExchangeStreamCaptureMode(&mode);
  if (error == cudaSuccess) error = left;
  if (visit->pushed) left = (cudaError_t)zero_cuda_pop();
  return settle(error == cudaSuccess ? left : error);
}

/* The body of a function that makes one call on a device. */
#define RETURN_ON(device, call)                  \
  do {                                           \
    zero_cuda_visit visit;                       \
    cudaError_t error = enter((device), &visit); \
    if (error == cudaSuccess) error = (call);    \
    return leave(error, &visit);                 \
  } while (0)

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

/* Also called during captures of this thread, which the query does not affect. The relaxed mode
 * keeps drivers from rejecting it as unsafe. */
static int32_t module_memory_device(int64_t device, const void *address, int64_t *out) {
  zero_cuda_visit visit;
  struct cudaPointerAttributes attributes = {0};
  cudaError_t error = enter_in(cudaStreamCaptureModeRelaxed, device, &visit);
  if (error == cudaSuccess) error = cudaPointerGetAttributes(&attributes, address);
  *out = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged ? attributes.device : -1;
  return leave(error, &visit);
}

/* Does not ask for the device of a captured stream: asking is an error that ends the capture. */
static int32_t module_stream_device(int64_t device, void *stream, int64_t *out) {
  zero_cuda_visit visit;
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  int found = (int)device;
  cudaError_t error = enter(device, &visit);
  if (error == cudaSuccess) error = cudaStreamIsCapturing((cudaStream_t)stream, &status);
  if (error == cudaSuccess && status == cudaStreamCaptureStatusNone) error = cudaStreamGetDevice((cudaStream_t)stream, &found);
  if (error == cudaErrorCallRequiresNewerDriver) {
    (void)cudaGetLastError();
    found = (int)device;
    error = cudaSuccess;
  }
  *out = found;
  return leave(error, &visit);
}

static int32_t module_pinned_alloc(int64_t device, int64_t nbytes, void **out) {
  RETURN_ON(device, cudaHostAlloc(out, (size_t)nbytes, cudaHostAllocPortable));
}

static int32_t module_pinned_free(int64_t device, void *data) { RETURN_ON(device, cudaFreeHost(data)); }

static int32_t module_stream_create(int64_t device, void **out) {
  RETURN_ON(device, cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking));
}

static int32_t module_stream_destroy(int64_t device, void *stream) { RETURN_ON(device, cudaStreamDestroy((cudaStream_t)stream)); }

static int32_t module_stream_wait(int64_t device, void *stream) { RETURN_ON(device, cudaStreamSynchronize((cudaStream_t)stream)); }

static int32_t module_stream_captures(int64_t device, void *stream, int32_t *out) {
  zero_cuda_visit visit;
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t error = enter(device, &visit);
  if (error == cudaSuccess) error = cudaStreamIsCapturing((cudaStream_t)stream, &status);
  *out = status != cudaStreamCaptureStatusNone;
  return leave(error, &visit);
}

static int32_t module_copy(int64_t device, void *out, const void *from, int64_t nbytes, void *stream) {
  RETURN_ON(device, cudaMemcpyAsync(out, from, (size_t)nbytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

static int32_t module_event_create(int64_t device, void **out) {
  RETURN_ON(device, cudaEventCreateWithFlags((cudaEvent_t *)out, cudaEventDisableTiming));
}

static int32_t module_event_destroy(int64_t device, void *event) { RETURN_ON(device, cudaEventDestroy((cudaEvent_t)event)); }

static int32_t module_event_record(int64_t device, void *event, void *stream) {
  RETURN_ON(device, cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

static int32_t module_event_wait(int64_t device, void *event) { RETURN_ON(device, cudaEventSynchronize((cudaEvent_t)event)); }

static int32_t module_event_ended(int64_t device, void *event, int32_t *out) {
  zero_cuda_visit visit;
  cudaError_t error = enter(device, &visit);
  if (error == cudaSuccess) error = cudaEventQuery((cudaEvent_t)event);
  *out = error == cudaSuccess;
  if (error == cudaErrorNotReady) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  return leave(error, &visit);
}

static int32_t module_stream_follow(int64_t device, void *stream, void *event) {
  RETURN_ON(device, cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

/* Clears the memory in a stream of its own: work in the default stream would end captures of
 * streams that wait for it. */
static int32_t module_device_alloc(int64_t device, int64_t nbytes, void **out) {
  zero_cuda_visit visit;
  void *data = NULL;
  cudaStream_t stream = NULL;
  cudaError_t error = enter(device, &visit);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaMalloc(&data, (size_t)nbytes);
  if (error == cudaSuccess) error = cudaMemsetAsync(data, 0, (size_t)nbytes, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (stream != NULL) {
    const cudaError_t ended = cudaStreamDestroy(stream);
    if (error == cudaSuccess) error = ended;
  }
  if (error == cudaSuccess) {
    *out = data;
  } else if (data != NULL) {
    (void)cudaFree(data);
  }
  return leave(error, &visit);
}

static int32_t module_device_free(int64_t device, void *data) { RETURN_ON(device, cudaFree(data)); }

static int32_t module_clear(int64_t device, void *data, int64_t nbytes, void *stream) {
  RETURN_ON(device, cudaMemsetAsync(data, 0, (size_t)nbytes, (cudaStream_t)stream));
}

static int32_t module_reach(int64_t device, int64_t peer) {
  if (device == peer) return 0;
  zero_cuda_visit visit;
  cudaError_t error = enter(device, &visit);
  if (error == cudaSuccess) error = cudaDeviceEnablePeerAccess((int)peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  return leave(error, &visit);
}

static int32_t module_enter(int64_t device, zero_cuda_visit *out) {
  const cudaError_t error = enter(device, out);
  return error == cudaSuccess ? 0 : leave(error, out);
}

static int32_t module_leave(const zero_cuda_visit *visit) { return leave(cudaSuccess, visit); }

static int32_t module_load(int64_t device) { RETURN_ON(device, (cudaError_t)zero_cuda_load_kernels()); }

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
      .load = module_load,
      .kernels = &zero_cuda_kernels,
  };
  return &table;
}
