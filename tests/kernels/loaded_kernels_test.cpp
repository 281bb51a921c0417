/// @file Checks that the code of every kernel is loaded on a device before any kernel runs. All
/// kernels that the module registers with CUDA's run time must be queried, with or without a
/// device.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <set>

namespace {

/// Addresses of kernels.
struct Seen {
  std::set<const void *> registered;
  std::set<const void *> loaded;
  cudaError_t answer = cudaSuccess;
};

/// Kernels are registered before main.
Seen &seen() {
  static Seen all;
  return all;
}

}  // namespace

// The linker uses these instead of the functions of CUDA's run time, which the first of them still
// calls.
extern "C" {
int32_t zero_cuda_load_kernels();
void __real___cudaRegisterFunction(void **module, const char *function, char *name, const char *device_name, int threads, void *thread,
                                   void *block, void *block_size, void *grid_size, int *warp_size);
void __wrap___cudaRegisterFunction(void **module, const char *function, char *name, const char *device_name, int threads, void *thread,
                                   void *block, void *block_size, void *grid_size, int *warp_size) {
  seen().registered.insert(function);
  __real___cudaRegisterFunction(module, function, name, device_name, threads, thread, block, block_size, grid_size, warp_size);
}
cudaError_t __wrap_cudaFuncGetAttributes(cudaFuncAttributes *, const void *function) {
  seen().loaded.insert(function);
  return seen().answer;
}
}

namespace {

TEST(LoadedKernels, AreAllThatThereAre) {
  EXPECT_EQ(zero_cuda_load_kernels(), 0);
  EXPECT_GT(seen().registered.size(), 50u);
  EXPECT_EQ(seen().loaded, seen().registered);
}

TEST(LoadedKernels, TheFirstThatIsNotTakenIsAnError) {
  seen().loaded.clear();
  seen().answer = cudaErrorNoKernelImageForDevice;
  EXPECT_EQ(zero_cuda_load_kernels(), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(seen().loaded.size(), 1u);
}

}  // namespace
