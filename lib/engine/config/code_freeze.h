/// @file ZERO_KEY_CODE_FREEZE: the check of the keys that it needs and of those that it excludes.
/// Knows no parameters.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "engine/config/settings.h"

namespace zero {

/// After clipping, replicas, codes and residuals were read.
Status read_code_freeze(const Config &config, Settings *out);

}  // namespace zero
