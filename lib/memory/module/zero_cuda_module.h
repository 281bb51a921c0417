/// @file CUDA table: the C functions through which libzero calls CUDA's runtime and its kernels for
/// devices. The module that provides it contains the runtime and needs only the driver.
#ifndef ZERO_CUDA_MODULE_H
#define ZERO_CUDA_MODULE_H

#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the table, so that a module from another build is refused. */
#define ZERO_CUDA_TABLE_VERSION 6

#define ZERO_CUDA_TEXT_(x) #x
#define ZERO_CUDA_TEXT(x) ZERO_CUDA_TEXT_(x)
#define ZERO_CUDA_BUILD                                                                                    \
  "libzero " ZERO_CUDA_TEXT(ZERO_VERSION_MAJOR) "." ZERO_CUDA_TEXT(ZERO_VERSION_MINOR) "." ZERO_CUDA_TEXT( \
      ZERO_VERSION_PATCH) ", CUDA table " ZERO_CUDA_TEXT(ZERO_CUDA_TABLE_VERSION)

/* The one symbol a module exports. */
#define ZERO_CUDA_MODULE_SYMBOL "zero_cuda_module"

/* The state of the calling thread before enter. */
typedef struct zero_cuda_visit {
  int32_t pushed; /* 1 if another device, or none, was current */
  int32_t mode;   /* a cudaStreamCaptureMode; -1: unknown */
} zero_cuda_visit;

/*
 * Functions return 0 or a CUDA error code for error_text. Streams are those of CUDA; NULL is the
 * default stream of the device. Each call makes `device` current during the call. Except for enter,
 * the calling thread's device and its last error stay unchanged. Captures by other threads neither
 * make a call fail nor are ended by one. Only event_wait, stream_wait, reach, load and functions
 * that create or free something wait.
 */
typedef struct zero_cuda_table {
  uint64_t struct_size;
  const char *build; /* ZERO_CUDA_BUILD of the module */

  void (*error_text)(int32_t error, char *out, int64_t out_nbytes);

  /* 0 devices are an error, as is a driver that is missing or too old. */
  int32_t (*device_count)(int64_t *out);
  int32_t (*device_name)(int64_t device, char *out, int64_t out_nbytes);
  /* The device that owns the memory at an address; -1 for host memory, pinned or not. */
  int32_t (*memory_device)(int64_t device, const void *address, int64_t *out);
  /* The device of a stream. It is `device` with drivers older than CUDA 12.8, and for a captured
   * stream. */
  int32_t (*stream_device)(int64_t device, void *stream, int64_t *out);

  /* Host memory that copies access at full speed. */
  int32_t (*pinned_alloc)(int64_t device, int64_t nbytes, void **out);
  int32_t (*pinned_free)(int64_t device, void *data);

  /* A stream that does not wait for the default stream. */
  int32_t (*stream_create)(int64_t device, void **out);
  int32_t (*stream_destroy)(int64_t device, void *stream);
  int32_t (*stream_wait)(int64_t device, void *stream);
  /* *out: 1 if the stream's work becomes part of a CUDA graph instead of running, otherwise 0. */
  int32_t (*stream_captures)(int64_t device, void *stream, int32_t *out);
  /* Copies `nbytes` bytes between host and devices, in any direction. */
  int32_t (*copy)(int64_t device, void *out, const void *from, int64_t nbytes, void *stream);

  int32_t (*event_create)(int64_t device, void **out);
  int32_t (*event_destroy)(int64_t device, void *event);
  /* The event ends when the work given to the stream so far has ended. An event that was never
   * recorded has ended. */
  int32_t (*event_record)(int64_t device, void *event, void *stream);
  int32_t (*event_wait)(int64_t device, void *event);
  int32_t (*event_ended)(int64_t device, void *event, int32_t *out);
  /* Later work of the stream runs after the event. */
  int32_t (*stream_follow)(int64_t device, void *stream, void *event);

  /* Zeroed memory of a device. */
  int32_t (*device_alloc)(int64_t device, int64_t nbytes, void **out);
  int32_t (*device_free)(int64_t device, void *data);
  /* Sets `nbytes` bytes of a device to 0. */
  int32_t (*clear)(int64_t device, void *data, int64_t nbytes, void *stream);
  /* Kernels of `device` may read and write the memory of `peer` from now on. */
  int32_t (*reach)(int64_t device, int64_t peer);

  /* enter makes a device the thread's current one, for libraries that use the current device. leave
   * restores the state from before; a failed enter does so itself. */
  int32_t (*enter)(int64_t device, zero_cuda_visit *out);
  int32_t (*leave)(const zero_cuda_visit *visit);

  /* Loads the code of all kernels on the device. Loading at the first launch could wait for running
   * work, which may wait for other ranks. */
  int32_t (*load)(int64_t device);
  const void *kernels; /* zero::kernels::cuda::Table of kernels/cuda/table.h */
} zero_cuda_table;

typedef const zero_cuda_table *(*zero_cuda_module_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
