/// @file Adds momentum to sums of gradients.
#include "engine/gradients/momentum_correction.h"

#include "core/default_floats.h"

#include <cmath>

namespace zero {

void MomentumCorrection::open(const Plan &plan, double momentum, Arena &memory) {
  momentum_ = static_cast<float>(momentum);
  CarriedState::open(own_counts(plan), memory);
}

/// A velocity that is not finite is dropped, so that one such gradient does not spoil later ones.
float *MomentumCorrection::add(int64_t bucket, float *values) {
  if (!kept()) return nullptr;
  const DefaultFloats floats;
  const auto [from, to] = change(bucket);
  const bool first = from != to;
  const float momentum = first ? momentum_ : 1;
  for (int64_t i = 0; i < count(bucket); ++i) {
    const float velocity = momentum * from[i] + values[i];
    to[i] = std::isfinite(velocity) ? velocity : 0;
    if (first) values[i] = velocity;
  }
  return to;
}

}  // namespace zero
