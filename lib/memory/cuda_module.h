/// @file CUDA module: finds and loads libzero_cuda.so. Knows the build that it must come from,
/// nothing of CUDA.
#pragma once

#include "core/status.h"
#include "memory/module/zero_cuda_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and never unloads it. `path` names its file. If it is empty,
/// the variable ZERO_CUDA_MODULE, the folder of libzero and the loader's path are searched in this
/// order. ZERO_E_MODULE names the files tried, the reasons and the remedy. Callable from any
/// thread.
Status load_cuda_module(const std::string &path, const zero_cuda_table **out);

}  // namespace zero
