/// @file The first CUDA device, through libzero_cuda.so.
#include "memory/cuda_module.h"
#include "tests/kernels/tested_device.h"

namespace zero::kernels::test {

const cuda::Table *tested_kernels() {
  const zero_cuda_table *table = nullptr;
  return load_cuda_module("", &table).ok() ? static_cast<const cuda::Table *>(table->kernels) : nullptr;
}

}  // namespace zero::kernels::test
