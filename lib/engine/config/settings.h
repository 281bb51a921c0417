/// @file Settings: what an optimizer was told once, at creation, by its config. Knows the keys; never the group's collectives.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "engine/config/precision.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

class Group;

/// How gradients of a step are bounded: by global norm, or by value; 0 = not.
struct Clipping {
  double norm;
  double value;
};

struct Settings {
  int64_t stage;
  bool trains;                          ///< false: algorithm "none", parameters only
  const kernels::Algorithm *algorithm;  ///< of set 0; nullptr: the caller's own, or none
  int64_t custom_slots;
  Precision precision;
  int64_t bucket_nbytes;  ///< 0: as the layout chooses
  int64_t divisor;        ///< a zero_divisor
  bool skips_nonfinite;
  bool grad_norm;  ///< asked for, or needed to clip
  Clipping clipping;
  bool stochastic;
  uint64_t seed;
  bool leaves_unfilled;  ///< parameters that no rank filled stay untouched
  bool accumulates_in_f32;
  bool average;
  int64_t gather_below;     ///< elements
  bool one_copy;            ///< ranks of a host keep one copy of whole parameters
  int64_t prefetch_nbytes;  ///< gathered ahead in stage 3
  bool prefetch_follows;    ///< at most what the layout chooses
  bool overlap;
  int64_t pool_limit;    ///< 0 = none
  int64_t verify_every;  ///< steps; 0 = never
  int64_t trace_events;  ///< kept; 0 = no trace
  int64_t device;        ///< where gradients and parameters of the caller may lie; -1 = on the host only
  bool on_device;        ///< what is kept lies there too
  int64_t memory_limit;  ///< of the ranks of a host together; 0 = what it has available
  std::vector<int64_t> shard_weights;
  AllocatorHook hook;

  const char *algorithm_name() const { return algorithm != nullptr ? algorithm->name : trains ? "custom" : "none"; }
  /// Whether a thread may advance collectives over `group` while the caller works.
  bool overlaps_in(const Group &group) const;
  /// Everything that must be the same on all ranks but for hyper-parameters and parameters, one line each.
  std::string text() const;
  /// What must be the same in the whole model group.
  std::string model_text() const;
};

/// Finds the algorithm that a config names; nullptr for "custom" and "none".
Status read_algorithm(const Config &config, const kernels::Algorithm **out);

/// Reads the config of an optimizer over `size` ranks.
Status read_settings(const Config &config, int64_t size, Settings *out);

}  // namespace zero
