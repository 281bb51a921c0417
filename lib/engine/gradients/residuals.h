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
  /// `keep`: what the step leaves is what the next begins with. `in_full`: it has lost nothing.
  void end_step(bool keep, bool in_full);
  /// Gradients are multiplied by a loss scale, and residuals with them.
  void follow_loss_scale(double scale);
  /// All become zero.
  void forget();

  /// @name Between steps
  /// @{
  /// All are zero, on all ranks alike.
  bool zero() const { return zero_; }
  /// That of the gradients whose losses are kept.
  double loss_scale() const { return scale_; }
  /// The losses of some elements of a tensor.
  struct Part {
    Range elements;
    float *data = nullptr;
  };
  /// Those of this rank's sums.
  Part sums_of(const Plan &plan, int64_t id) const;
  /// Those of the results that this rank makes, as one of this replica.
  Part results_of(const Plan &plan, int64_t id, int64_t replica, int64_t replicas) const;
  /// Parts were written, of gradients with this loss scale.
  void note_written(double loss_scale);
  /// The elements whose results rank `rank` of a replica makes.
  static Range results_in(const Plan &plan, int64_t id, int64_t rank, int64_t replica, int64_t replicas);
  /// @}

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
  Part part_of(const Plan &plan, int64_t id, Range elements, int64_t first) const;

  Arena memory_;
  std::vector<Bucket> buckets_;
  double scale_ = 1;
  bool zero_ = true;
};

}  // namespace zero
