/// @file Residuals: the coding losses of gradients in earlier steps, which are added to gradients
/// of later steps (error feedback: Seide et al., "1-bit stochastic gradient descent", 2014). Knows
/// buckets; never senders.
#pragma once

#include "engine/compute/coded_mean.h"
#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

/// Each residual is there twice: what a step began with, and what it leaves. A step that is skipped
/// keeps the first. One thread at a time.
class Residuals {
 public:
  /// Bytes that open() takes, with `replicas` that send gradients to one another.
  static int64_t nbytes(const Plan &plan, int64_t replicas);
  Status open(const Plan &plan, int64_t replicas, const MemorySource &source);
  void close();
  bool kept() const { return memory_.data() != nullptr; }

  /// For a reduction of the bucket. A later one of the same step begins with what the one before
  /// has left.
  CodingLoss of(int64_t bucket);
  /// `keep`: what the step leaves is what the next begins with.
  void end_step(bool keep);
  /// Gradients are multiplied by a loss scale, and residuals with them.
  void follow_loss_scale(double scale);
  /// All become zero.
  void forget();

 private:
  struct Bucket {
    int64_t sent = 0;    ///< count
    int64_t result = 0;  ///< count
    float *now = nullptr;
    float *next = nullptr;
    bool reduced = false;  ///< in this step

    int64_t count() const { return sent + result; }
  };
  static Bucket bucket_of(const Plan &plan, int64_t index, int64_t replicas);

  Arena memory_;
  std::vector<Bucket> buckets_;
  double scale_ = 1;
};

}  // namespace zero
