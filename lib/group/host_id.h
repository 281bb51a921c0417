/// @file Which host this process runs on. Knows nothing of ranks.
#pragma once

#include <cstdint>

namespace zero {

/// The same on ranks that share a kernel, host name and network namespace, so that containers of one machine count as hosts; or as the
/// variable ZERO_HOST_ID tells them.
uint64_t host_id();

}  // namespace zero
