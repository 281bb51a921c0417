/// @file Finding and loading libzero_nccl.so. Knows which build it must come from and which NCCL is too old, nothing of what NCCL does.
#pragma once

#include "core/status.h"
#include "group/module/zero_nccl_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and for ever. `path` is where it lies; empty: the variable ZERO_NCCL_MODULE, then the folder of
/// libzero, then wherever the loader finds it. ZERO_E_MODULE tells what was tried, why it failed and what to install, also where the NCCL
/// that came with it is too old. Any thread.
Status load_nccl_module(const std::string &path, const zero_nccl_table **out);

/// The NCCL that is there, in one line; or why there is none. Loads the module.
std::string describe_nccl();
/// 22809: "2.28.9"; 2804, as numbers were before 2.9: "2.8.4".
std::string nccl_version_text(int64_t version);

}  // namespace zero
