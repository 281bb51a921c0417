/// @file Settings: what an optimizer was told once, at creation, by its config. Knows the keys; never the group's collectives.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// Slots that algorithm "custom" may keep.
inline constexpr int64_t kMostCustomSlots = 4;

struct Settings {
  int64_t stage;
  const kernels::Algorithm *algorithm;  ///< nullptr: the caller's own
  int64_t custom_slots;
  int64_t bucket_nbytes;
  int64_t divisor;  ///< a zero_divisor
  bool skips_nonfinite;
  bool grad_norm;
  bool overlap;
  int64_t pool_limit;  ///< 0 = none
  std::vector<int64_t> shard_weights;
  AllocatorHook hook;

  const char *algorithm_name() const { return algorithm != nullptr ? algorithm->name : "custom"; }
};

/// Reads the config of an optimizer over `size` ranks.
Status read_settings(const Config &config, int64_t size, Settings *out);

}  // namespace zero
