/// @file Random numbers of the operating system. Knows nothing of what they name.
#pragma once

#include "core/status.h"

#include <cstdint>

namespace zero {

/// 64 random bits: from getrandom or, where a sandbox refuses it, from /dev/urandom. ZERO_E_SYSTEM when there is neither.
Status random_u64(uint64_t *out);

}  // namespace zero
