/// @file ServerSettings: the settings of a server object, read from its config. Knows the keys;
/// never the calls of ranks.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "engine/config/hyper_set.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <string>

namespace zero {

struct ServerSettings {
  int64_t count = 0;         ///< elements of the parameters
  int64_t server_count = 0;  ///< the first ranks
  int64_t worker_count = 0;  ///< all others
  bool round_robin = true;
  int64_t staleness = 0;  ///< pushes that a worker may be ahead of the slowest
  int32_t rule = ZERO_SERVER_RULE_UPDATE;
  double rate = 0;     ///< weight of a pushed value in a moving average
  int64_t period = 1;  ///< pushes per mean
  bool skips_nonfinite = true;
  const kernels::Algorithm *algorithm = nullptr;  ///< for updates; otherwise nullptr
  HyperSet hyper;
  int64_t threads = 1;
  AllocatorHook hook;

  /// The settings that must be the same on all ranks, one per line.
  std::string text() const;
};

/// Reads the config of a server object in a group of `ranks`.
Status read_server_settings(const Config &config, int64_t ranks, int64_t count, ServerSettings *out);

}  // namespace zero
