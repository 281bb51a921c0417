/// @file The table of C functions through which libzero reaches CUDA's run time and its kernels for devices. The module that fills it holds
/// the run time and needs only the driver.
#ifndef ZERO_CUDA_MODULE_H
#define ZERO_CUDA_MODULE_H

#include <zero/zero.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the table, so that a module from another build is refused instead of called wrongly. */
#define ZERO_CUDA_TABLE_VERSION 6

#define ZERO_CUDA_TEXT_(x) #x
#define ZERO_CUDA_TEXT(x) ZERO_CUDA_TEXT_(x)
#define ZERO_CUDA_BUILD                                                                                    \
  "libzero " ZERO_CUDA_TEXT(ZERO_VERSION_MAJOR) "." ZERO_CUDA_TEXT(ZERO_VERSION_MINOR) "." ZERO_CUDA_TEXT( \
      ZERO_VERSION_PATCH) ", CUDA table " ZERO_CUDA_TEXT(ZERO_CUDA_TABLE_VERSION)

/* The one symbol a module exports. */
#define ZERO_CUDA_MODULE_SYMBOL "zero_cuda_module"

/* What the calling thread had before enter. */
typedef struct zero_cuda_visit {
  int32_t pushed; /* whether that was another device, or none */
  int32_t mode;   /* a cudaStreamCaptureMode; -1: unknown */
} zero_cuda_visit;

/*
 * Functions return 0 or a CUDA error code for error_text. Streams are those of CUDA; NULL is the default stream of the device. Each call
 * makes `device` current while it lasts; but for enter, the calling thread's device and its last error stay as they are. A stream that
 * another thread captures neither makes a call fail nor is ended by one. Nothing here waits but event_wait, stream_wait, reach, load and
 * the functions that make or free something.
 */
typedef struct zero_cuda_table {
  uint64_t struct_size;
  const char *build; /* ZERO_CUDA_BUILD of the module */

  void (*error_text)(int32_t error, char *out, int64_t out_nbytes);

  /* 0 devices are an error, as is a driver that is missing or too old. */
  int32_t (*device_count)(int64_t *out);
  int32_t (*device_name)(int64_t device, char *out, int64_t out_nbytes);
  /* The device whose memory an address belongs to, whichever it is; -1 for memory of the host, pinned or not. */
  int32_t (*memory_device)(int64_t device, const void *address, int64_t *out);
  /* Drivers older than CUDA 12.8 cannot tell, nor can any of a stream that is captured; then it is `device`. */
  int32_t (*stream_device)(int64_t device, void *stream, int64_t *out);

  /* Memory of the host that copies reach at full speed. */
  int32_t (*pinned_alloc)(int64_t device, int64_t nbytes, void **out);
  int32_t (*pinned_free)(int64_t device, void *data);

  /* A stream that does not wait for the default stream. */
  int32_t (*stream_create)(int64_t device, void **out);
  int32_t (*stream_destroy)(int64_t device, void *stream);
  int32_t (*stream_wait)(int64_t device, void *stream);
  /* Whether the stream's work becomes part of a CUDA graph instead of being done. */
  int32_t (*stream_captures)(int64_t device, void *stream, int32_t *out);
  /* `nbytes` bytes between host and devices, any way. */
  int32_t (*copy)(int64_t device, void *out, const void *from, int64_t nbytes, void *stream);

  int32_t (*event_create)(int64_t device, void **out);
  int32_t (*event_destroy)(int64_t device, void *event);
  /* The event ends when all that the stream was given so far has ended. One that was never recorded has ended. */
  int32_t (*event_record)(int64_t device, void *event, void *stream);
  int32_t (*event_wait)(int64_t device, void *event);
  int32_t (*event_ended)(int64_t device, void *event, int32_t *out);
  /* What the stream is given from now on comes after the event. */
  int32_t (*stream_follow)(int64_t device, void *stream, void *event);

  /* Memory of a device, all 0. */
  int32_t (*device_alloc)(int64_t device, int64_t nbytes, void **out);
  int32_t (*device_free)(int64_t device, void *data);
  /* `nbytes` bytes of a device = 0. */
  int32_t (*clear)(int64_t device, void *data, int64_t nbytes, void *stream);
  /* Kernels of `device` may read and write the memory of `peer` from now on. */
  int32_t (*reach)(int64_t device, int64_t peer);

  /* Makes a device the thread's current one, for libraries that work on that; then all is as before, also where enter fails. */
  int32_t (*enter)(int64_t device, zero_cuda_visit *out);
  int32_t (*leave)(const zero_cuda_visit *visit);

  /* Brings the code of all kernels to the device. A kernel that is launched before may wait for what runs there, and that for other ranks. */
  int32_t (*load)(int64_t device);
  const void *kernels; /* zero::kernels::cuda::Table of kernels/cuda/table.h */
} zero_cuda_table;

typedef const zero_cuda_table *(*zero_cuda_module_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
