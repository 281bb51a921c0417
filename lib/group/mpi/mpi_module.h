/// @file MpiModule: finding and loading libzero_mpi.so. Knows its places and its build, nothing of
/// MPI's functions.
#pragma once

#include "core/status.h"
#include "group/module/zero_mpi_module.h"

#include <string>

namespace zero {

/// Loads the module once per process and for ever (MPI libraries do not survive being unloaded).
/// `path` is its file; empty: the variable ZERO_MPI_MODULE, then the folder of libzero, then the
/// search path of the loader. ZERO_E_MODULE names the attempts, their errors, and the package to
/// install. Any thread.
Status load_mpi_module(const std::string &path, const zero_mpi_table **out);

}  // namespace zero
