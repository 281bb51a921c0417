/// @file The table of the kernels for CUDA devices, compiled for the host.
#include "tests/kernels/host_run_kernels.h"

extern "C" {
extern const zero::kernels::cuda::Table zero_cuda_kernels;
}

const zero::kernels::cuda::Table *host_run_kernels() { return &zero_cuda_kernels; }
