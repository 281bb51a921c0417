/// @file Launches: kernels run on a device under nvcc. Under other compilers, for tests, they run
/// on the calling thread as loops over the threads of each block. Knows no operation.
///
/// A kernel is a struct that is copied to the device, with these members:
/// - Shared, Registers: memory of a block and of a thread, undefined before the first phase
/// - kPhases: the number of phases, between which the threads of a block wait for one another
/// - run<phase>(place, registers, shared)
///
/// Optional members:
/// - kFirstRepeated, kEndRepeated, rounds(block): phases [kFirstRepeated, kEndRepeated) run
///   rounds(block) times, one after another; the other phases run once, before and after them
/// - kResidentBlocks: the least number of blocks that a multiprocessor holds, instead of
///   kFrequentBlocks
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include "kernels/cuda/context.h"

#include <cuda_runtime_api.h>

#define ZERO_DEVICE __device__ inline
/// For loops whose index selects registers.
#define ZERO_UNROLLED _Pragma("unroll")
/// For loops that would otherwise take too many registers.
#define ZERO_ROLLED _Pragma("unroll 1")
#else
#include <atomic>
#include <cstring>
#define ZERO_DEVICE inline
#define ZERO_UNROLLED
#define ZERO_ROLLED
#endif

namespace zero::kernels::cuda {

/// Threads of a block.
inline constexpr int kThreads = 256;

/// The position of a thread.
struct Place {
  int64_t block;
  int thread;
  int64_t round = 0;  ///< number of the repetition, for repeated phases
};

/// Base of kernels whose threads are independent of one another.
struct ThreadsAlone {
  struct Shared {};
  struct Registers {};
  static constexpr int kPhases = 1;
};

/// With 64 registers per thread, these are half of the threads that a multiprocessor can hold. That
/// keeps enough loads in flight.
inline constexpr int kFrequentBlocks = 4;

template <class Kernel>
consteval int resident_blocks() {
  if constexpr (requires { Kernel::kResidentBlocks; }) {
    return Kernel::kResidentBlocks;
  } else {
    return kFrequentBlocks;
  }
}

/// Runs phases [phase, end) of a block, each by block.run<phase>(round).
template <int phase, int end, class Block>
ZERO_DEVICE void run_phases(Block &block, int64_t round) {
  block.template run<phase>(round);
  if constexpr (phase + 1 < end) run_phases<phase + 1, end>(block, round);
}

template <class Kernel, class Block>
ZERO_DEVICE void run_all_phases(const Kernel &kernel, Block &block) {
  if constexpr (requires { Kernel::kFirstRepeated; }) {
    run_phases<0, Kernel::kFirstRepeated>(block, 0);
    const int64_t rounds = kernel.rounds(block.number());
    for (int64_t round = 0; round < rounds; ++round) run_phases<Kernel::kFirstRepeated, Kernel::kEndRepeated>(block, round);
    run_phases<Kernel::kEndRepeated, Kernel::kPhases>(block, 0);
  } else {
    run_phases<0, Kernel::kPhases>(block, 0);
  }
}

#ifdef __CUDACC__

/// One thread of a running block.
template <class Kernel>
struct RunningBlock {
  const Kernel &kernel;
  Place place;
  typename Kernel::Registers &registers;
  typename Kernel::Shared &shared;

  __device__ inline int64_t number() const { return place.block; }

  template <int phase>
  __device__ inline void run(int64_t round) {
    place.round = round;
    kernel.template run<phase>(place, registers, shared);
    if constexpr (phase + 1 < Kernel::kPhases) __syncthreads();
  }
};

template <class Kernel>
__global__ void __launch_bounds__(kThreads, resident_blocks<Kernel>()) run_block(const __grid_constant__ Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  typename Kernel::Registers registers;
  RunningBlock<Kernel> block = {kernel, {blockIdx.x, static_cast<int>(threadIdx.x)}, registers, shared};
  run_all_phases(kernel, block);
}

/// An entry in the list of all kernels that the module launches. Each kernel adds itself when the
/// module is loaded.
class ListedKernel {
 public:
  explicit ListedKernel(const void *function) : function_(function), before_(newest_) { newest_ = this; }
  ListedKernel(const ListedKernel &) = delete;
  const void *function() const { return function_; }

  /// Loads the code of all kernels on the calling thread's current device.
  static int32_t load_all() {
    cudaError_t error = cudaSuccess;
    for (const ListedKernel *kernel = newest_; kernel != nullptr && error == cudaSuccess; kernel = kernel->before_) {
      cudaFuncAttributes attributes;
      error = cudaFuncGetAttributes(&attributes, kernel->function_);
    }
    return error;
  }

 private:
  static inline const ListedKernel *newest_ = nullptr;
  const void *const function_;
  const ListedKernel *const before_;
};

template <class Kernel>
inline const ListedKernel kListed(reinterpret_cast<const void *>(&run_block<Kernel>));

/// Keeps the calling thread's device and, unless something fails, its last error.
inline int32_t launch_function(int64_t device, void *stream, int64_t blocks, const void *function, const void *kernel) {
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  int32_t pushed = 0;
  int32_t error = zero_cuda_push(device, &pushed);
  if (error == 0) {
    void *arguments[] = {const_cast<void *>(kernel)};
    error =
        cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), arguments, 0, static_cast<cudaStream_t>(stream));
    if (error != 0) (void)cudaGetLastError();  // or the program would take it for its own
  }
  const int32_t left = pushed != 0 ? zero_cuda_pop() : 0;
  return error != 0 ? error : left;
}

template <class Kernel>
int32_t launch(int64_t device, void *stream, int64_t blocks, const Kernel &kernel) {
  if (blocks == 0) return 0;
  return launch_function(device, stream, blocks, kListed<Kernel>.function(), &kernel);
}

/// Sets the flag. Any number of threads may call this.
__device__ inline void raise(int32_t *flag) { atomicOr(flag, 1); }

__device__ inline void add_to(int64_t &sum, int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long *>(&sum), static_cast<unsigned long long>(value));
}

/// largest = max(largest, value). All threads of a warp call this together, for one `largest`.
__device__ inline void raise_to(uint32_t &largest, uint32_t value) {
  value = __reduce_max_sync(0xffffffff, value);
  if (threadIdx.x % 32 == 0) atomicMax(&largest, value);
}

inline int32_t load_all() { return ListedKernel::load_all(); }

#else

/// A running block with all of its threads.
template <class Kernel>
struct RunningBlock {
  const Kernel &kernel;
  const int64_t number_;
  typename Kernel::Registers registers[kThreads];
  typename Kernel::Shared shared;

  RunningBlock(const Kernel &the_kernel, int64_t number) : kernel(the_kernel), number_(number) {
    std::memset(static_cast<void *>(&shared), 0xa5, sizeof shared);  // undefined, as on a device
  }

  int64_t number() const { return number_; }

  template <int phase>
  void run(int64_t round) {
    for (int thread = 0; thread < kThreads; ++thread) kernel.template run<phase>({number_, thread, round}, registers[thread], shared);
  }
};

template <class Kernel>
int32_t launch(int64_t, void *, int64_t blocks, const Kernel &kernel) {
  for (int64_t number = 0; number < blocks; ++number) {
    RunningBlock<Kernel> block(kernel, number);
    run_all_phases(kernel, block);
  }
  return 0;
}

inline int32_t load_all() { return 0; }

inline void raise(int32_t *flag) { std::atomic_ref(*flag).fetch_or(1, std::memory_order_relaxed); }
inline void add_to(int64_t &sum, int64_t value) { std::atomic_ref(sum).fetch_add(value, std::memory_order_relaxed); }
inline void raise_to(uint32_t &largest, uint32_t value) { largest = value > largest ? value : largest; }

#endif

}  // namespace zero::kernels::cuda
