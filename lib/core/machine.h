/// @file Machine: its identity, and the memory that it offers to this process. Knows nothing of its
/// users.
#pragma once

#include <cstdint>
#include <string>

namespace zero {

/// A key that is equal for all processes of one running kernel, in any container, and differs
/// between kernels.
uint64_t machine_key();

/// Logical cores of this machine, including those that this process may not use; at least 1. Read
/// once.
int64_t online_cores();

/// Bytes that can still be taken without swapping; the largest number if there is no limit or none
/// can be read.
struct MemoryOffer {
  int64_t system_nbytes;  ///< by the whole machine
  /// In this process's control group or one above it, whichever leaves least; file pages count as
  /// free.
  int64_t group_nbytes;
  /// Key of that control group; the same for all processes of the machine that it limits.
  uint64_t group_key;
};

/// The system's files are read below `root`.
MemoryOffer memory_offer(const std::string &root = {});

}  // namespace zero
