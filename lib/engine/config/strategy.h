/// @file Strategies: names for sets of keys that reduce the traffic between replicas. Knows keys;
/// never their effects.
#pragma once

#include "core/config.h"

#include <string>

namespace zero {

/// Sets the keys of the strategy that `config` names. Keys that `config` sets itself keep their
/// values. *out_text: the strategy and its keys in one line; "" without a strategy.
Status expand_strategy(Config &config, std::string *out_text);

}  // namespace zero
