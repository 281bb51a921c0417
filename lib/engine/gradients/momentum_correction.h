/// @file MomentumCorrection: the momentum that gradients get before they are coded. A value that
/// waits in the residual then arrives with the momentum of all steps that it has waited for (Lin et
/// al., "Deep gradient compression", 2018, section 3). Knows buckets; never senders or codes.
#pragma once

#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

/// The velocity of each gradient u <- mu u + g, which takes the place of the gradient. Each is
/// there twice, as residuals are: a step that is skipped keeps the first. One thread at a time.
class MomentumCorrection {
 public:
  /// Bytes that open() takes.
  static int64_t nbytes(const Plan &plan);
  Status open(const Plan &plan, double momentum, const MemorySource &source);
  void close();

  /// Adds momentum to this rank's sums of the bucket. A later reduction of the same step adds none.
  /// Returns the velocities that the step leaves, which become 0 where the caller sends values;
  /// nullptr: there is no momentum.
  float *add(int64_t bucket, float *values);
  /// `keep`: what the step leaves is what the next begins with.
  void end_step(bool keep);
  /// Gradients are multiplied by a loss scale, and velocities with them.
  void follow_loss_scale(double scale);
  /// All become zero.
  void forget();

 private:
  struct Bucket {
    int64_t count = 0;
    float *now = nullptr;
    float *next = nullptr;
    bool reduced = false;  ///< in this step
  };

  Arena memory_;
  std::vector<Bucket> buckets_;
  float momentum_ = 0;
  double scale_ = 1;
};

}  // namespace zero
