/// @file Finding and loading libzero_mpi.so. Knows where modules lie and which build they must come from, nothing of what MPI does.
#pragma once

#include "core/status.h"
#include "group/module/zero_mpi_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and for ever (MPI libraries do not survive being unloaded). `path` is where it lies; empty: the
/// variable ZERO_MPI_MODULE, then the folder of libzero, then wherever the loader finds it. ZERO_E_MODULE tells what was tried, why it
/// failed and what to install. Any thread.
Status load_mpi_module(const std::string &path, const zero_mpi_table **out);

}  // namespace zero
