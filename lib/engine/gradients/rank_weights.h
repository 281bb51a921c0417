/// @file RankWeights: the weights that ranks give their gradients, and the divisor of sums. Knows
/// ranks; never the gradients.
#pragma once

#include "core/dtype.h"
#include "core/task.h"
#include "group/group.h"

#include <cstdint>
#include <vector>

namespace zero {

/// For one step. Sums of weights are over its micro-steps.
class RankWeights {
 public:
  /// Exchanges the weights of the gradients that follow. `across` as in ReduceStrategies.
  Task exchange(Group &group, Group *across, double weight);
  void end_step() { sum_ = 0; }
  /// The weights of sums that were loaded.
  void take(double sum) { sum_ = sum; }

  double sum() const { return sum_; }
  double divisor() const { return divisor_; }
  /// By rank, the factors of contributions; nullptr: 1. Those of f32 were multiplied on arrival, in
  /// the same arithmetic.
  const float *of(DType contributions) const { return weighs_ && contributions != DType::f32 ? weights_.data() : nullptr; }

 private:
  double divisor_ = 1;
  double sum_ = 0;
  std::vector<int64_t> bits_;
  std::vector<int64_t> all_bits_;  ///< those of all replicas
  std::vector<float> weights_;     ///< by rank
  bool weighs_ = false;            ///< one of them is not 1
};

}  // namespace zero
