/// @file Random numbers from the operating system. Knows nothing of their use.
#pragma once

#include "core/status.h"

#include <cstdint>

namespace zero {

/// Returns 64 random bits from getrandom or, if a sandbox refuses it, from /dev/urandom.
/// ZERO_E_SYSTEM if both fail.
Status random_u64(uint64_t *out);

}  // namespace zero
