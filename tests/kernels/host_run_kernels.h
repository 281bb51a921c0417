/// @file The kernels for CUDA devices without CUDA: their sources, compiled for the host.
#pragma once

#include "kernels/cuda/table.h"

/// Every function works on the calling thread until all is done; device and stream are not looked
/// at. Addresses are those of the host.
const zero::kernels::cuda::Table *host_run_kernels();
