/// @file Finding and loading libzero_cuda.so. Knows which build it must come from, nothing of what CUDA does.
#pragma once

#include "core/status.h"
#include "memory/module/zero_cuda_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and for ever. `path` is where it lies; empty: the variable ZERO_CUDA_MODULE, then the folder of
/// libzero, then wherever the loader finds it. ZERO_E_MODULE tells what was tried, why it failed and what to install. Any thread.
Status load_cuda_module(const std::string &path, const zero_cuda_table **out);

}  // namespace zero
