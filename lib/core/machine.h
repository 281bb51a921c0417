/// @file Machine: what this host is and what it offers. Knows nothing of who asks.
#pragma once

#include <cstdint>

namespace zero {

/// The same for all processes of one running host, and different between hosts.
uint64_t host_key();

/// Bytes of memory that can still be taken without swapping: what the system reports, and what the process's control group has left.
int64_t memory_available_nbytes();

}  // namespace zero
