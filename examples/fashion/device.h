/// @file device: what compute_cuda needs of a CUDA device: a stream, memory, copies, and launches of kernels. Every failure is one line on
/// standard error. Compiled by other compilers than nvcc, for tests, it only declares what a test then provides.
/// Knows nothing of the model.
///
/// A kernel is a struct without padding that is copied to the device; its operator()(i) is thread i, and threads know nothing of one
/// another.
#ifndef FASHION_DEVICE_H
#define FASHION_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

#include <cuda_runtime_api.h>
#include <stdio.h>

#define DEVICE_FUNCTION __device__ inline
#define DEVICE_OR_HOST_FUNCTION __host__ __device__ inline
#define DEVICE_UNROLLED _Pragma("unroll")

/// 1 after writing a line, 0 when error is cudaSuccess.
static inline int device_failed(cudaError_t error, const char *call) {
  if (error == cudaSuccess) return 0;
  fprintf(stderr, "train_fashion: %s: %s\n", call, cudaGetErrorString(error));
  return 1;
}

/// Makes a device that of the calling thread, and a stream there that waits for no other.
static inline int device_open(int64_t device, void **out_stream) {
  char call[48];
  cudaStream_t stream = NULL;
  snprintf(call, sizeof call, "--device cuda:%lld", (long long)device);
  if (device_failed(cudaSetDevice((int)device), call) || device_failed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), call)) {
    return -1;
  }
  *out_stream = stream;
  return 0;
}

/// Waits for what the stream was given. Takes NULL.
static inline void device_close(void *stream) {
  if (!stream) return;
  (void)device_failed(cudaStreamSynchronize((cudaStream_t)stream), "cudaStreamSynchronize");
  (void)device_failed(cudaStreamDestroy((cudaStream_t)stream), "cudaStreamDestroy");
}

/// NULL after writing a line.
static inline void *device_allocate(size_t nbytes) {
  void *memory = NULL;
  return device_failed(cudaMalloc(&memory, nbytes), "cudaMalloc") ? NULL : memory;
}

/// Takes NULL.
static inline void device_deallocate(void *memory) {
  if (memory) (void)device_failed(cudaFree(memory), "cudaFree");
}

static inline int device_clear(void *stream, void *to, size_t nbytes) {
  return device_failed(cudaMemsetAsync(to, 0, nbytes, (cudaStream_t)stream), "cudaMemsetAsync") ? -1 : 0;
}

/// Between any memory; both ends are free on return.
static inline int device_copy(void *stream, void *to, const void *from, size_t nbytes) {
  return device_failed(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDefault, (cudaStream_t)stream), "cudaMemcpyAsync") ||
                 device_failed(cudaStreamSynchronize((cudaStream_t)stream), "cudaStreamSynchronize")
             ? -1
             : 0;
}

constexpr int64_t kBlockThreads = 128, kMostBlocks = 1 << 20;

template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads) device_run(const Kernel kernel, const int64_t count) {
  const int64_t stride = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < count; i += stride) kernel(i);
}

/// Threads 0 .. count - 1 of a kernel. Its name is for the line of a failure.
template <class Kernel>
int device_launch(void *stream, int64_t count, const char *name, Kernel kernel) {
  if (count == 0) return 0;
  const int64_t blocks = (count + kBlockThreads - 1) / kBlockThreads;
  void *arguments[] = {&kernel, &count};
  return device_failed(cudaLaunchKernel((const void *)&device_run<Kernel>, dim3((unsigned)(blocks < kMostBlocks ? blocks : kMostBlocks)),
                                        dim3(kBlockThreads), arguments, 0, (cudaStream_t)stream),
                       name)
             ? -1
             : 0;
}

#else

#define DEVICE_FUNCTION inline
#define DEVICE_OR_HOST_FUNCTION inline
#define DEVICE_UNROLLED

int device_open(int64_t device, void **out_stream);
void device_close(void *stream);
void *device_allocate(size_t nbytes);
void device_deallocate(void *memory);
int device_clear(void *stream, void *to, size_t nbytes);
int device_copy(void *stream, void *to, const void *from, size_t nbytes);

/// Runs run(kernel, count), of a kernel of `nbytes` bytes, when it is the stream's turn.
int device_give(void *stream, void (*run)(const void *kernel, int64_t count), int64_t count, const void *kernel, size_t nbytes);

template <class Kernel>
int device_launch(void *stream, int64_t count, const char *, Kernel kernel) {
  const auto run = [](const void *given, int64_t threads) {
    for (int64_t i = 0; i < threads; i++) (*static_cast<const Kernel *>(given))(i);
  };
  return count == 0 ? 0 : device_give(stream, run, count, &kernel, sizeof kernel);
}

#endif

#endif
