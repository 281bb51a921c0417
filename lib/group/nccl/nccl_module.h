/// @file NcclModule: finding and loading libzero_nccl.so. Knows its build and the oldest NCCL that
/// it accepts, nothing of NCCL's functions.
#pragma once

#include "core/status.h"
#include "group/module/zero_nccl_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and for ever. `path` is its file; empty: the variable
/// ZERO_NCCL_MODULE, then the folder of libzero, then the search path of the loader. ZERO_E_MODULE
/// names the attempts, their errors, and the package to install, also if its NCCL is too old. Any
/// thread.
Status load_nccl_module(const std::string &path, const zero_nccl_table **out);

/// Describes the loaded NCCL in one line, or the reason why there is none. Loads the module.
std::string describe_nccl();
/// Formats a version: 22809 as "2.28.9"; 2804, the form before 2.9, as "2.8.4".
std::string nccl_version_text(int64_t version);

}  // namespace zero
