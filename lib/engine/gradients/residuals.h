/// @file Residuals: the coding losses of gradients in earlier steps, which are added to gradients
/// of later steps (error feedback: Seide et al., "1-bit stochastic gradient descent", 2014). Knows
/// buckets; never senders.
#pragma once

#include "engine/compute/coded_mean.h"
#include "engine/gradients/carried_state.h"
#include "engine/layout/plan.h"

#include <cstdint>
#include <vector>

namespace zero {

/// By bucket: the losses of this rank's cut, then those of the results that it makes.
class Residuals : public CarriedState {
 public:
  /// Bytes that open() takes, with `replicas` that send gradients to one another.
  static int64_t nbytes(const Plan &plan, int64_t replicas) { return CarriedState::nbytes(counts(plan, replicas)); }
  void open(const Plan &plan, int64_t replicas, Arena &memory) { CarriedState::open(counts(plan, replicas), memory); }

  /// For a reduction of the bucket, of which this rank sends `sent` values.
  CodingLoss of(int64_t bucket, int64_t sent);
  /// Between steps: those of the results that this rank makes, as one of this replica.
  CarriedPart results_of(const Plan &plan, int64_t id, int64_t replica, int64_t replicas) const;
  /// The elements whose results rank `rank` of a replica makes.
  static Range results_in(const Plan &plan, int64_t id, int64_t rank, int64_t replica, int64_t replicas);

 private:
  static std::vector<int64_t> counts(const Plan &plan, int64_t replicas);
};

}  // namespace zero
