/// @file Machine: which one this is and how much memory it offers this process. Knows nothing of who asks.
#pragma once

#include <cstdint>
#include <string>

namespace zero {

/// The same for all processes of one running kernel, whatever containers they are in, and different between kernels.
uint64_t machine_key();

/// Logical cores of this machine, whoever may use them; at least 1. Asked once.
int64_t online_cores();

/// Bytes that can still be taken without swapping. Where there is no limit, or none that can be read: the largest number.
struct MemoryOffer {
  int64_t system_nbytes;  ///< by the whole machine
  int64_t group_nbytes;   ///< in the control group that leaves least, of this process's and those above it; files' pages count as free
  uint64_t group_key;     ///< that control group; the same for all processes of the machine that it limits
};

/// `root` is where the system's files are looked for.
MemoryOffer memory_offer(const std::string &root = {});

}  // namespace zero
