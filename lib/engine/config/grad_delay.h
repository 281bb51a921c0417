/// @file Grad delay: the setting by which each step applies the gradients of the step before, and
/// the settings that exclude it. Knows the keys; never how gradients wait.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "engine/config/settings.h"

namespace zero {

/// Comes after all other settings. Fails if one of them does not go with the delay.
Status read_grad_delay(const Config &config, Settings *out);

}  // namespace zero
