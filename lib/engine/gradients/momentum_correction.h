/// @file MomentumCorrection: the momentum that gradients get before they are coded. A value that
/// waits in the residual then arrives with the momentum of all steps that it has waited for (Lin et
/// al., "Deep gradient compression", 2018, section 3). Knows buckets; never senders or codes.
#pragma once

#include "engine/gradients/carried_state.h"
#include "engine/layout/plan.h"

#include <cstdint>

namespace zero {

/// The velocity of each gradient of this rank's cuts u <- mu u + g, which takes the place of the
/// gradient.
class MomentumCorrection : public CarriedState {
 public:
  /// Bytes that open() takes.
  static int64_t nbytes(const Plan &plan) { return CarriedState::nbytes(own_counts(plan)); }
  void open(const Plan &plan, double momentum, Arena &memory);

  /// Adds momentum to this rank's sums of the bucket. A later reduction of the same step adds none.
  /// Returns the velocities that the step leaves, which become 0 where the caller sends values;
  /// nullptr: there is no momentum.
  float *add(int64_t bucket, float *values);

 private:
  float momentum_ = 0;
};

}  // namespace zero
