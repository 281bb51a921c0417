/// @file Gradients: what the caller fills in during a step: addresses, ready ranges, bucket buffers, and when a bucket's reduction starts.
/// Knows nothing of votes and updates.
#pragma once

#include "core/clock.h"
#include "engine/bucket_pool.h"
#include "engine/ready_ranges.h"
#include "engine/reductions.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

class Gradients {
 public:
  Gradients(const Plan &plan, const Settings &settings, const SlotMemory &slots, const HostKernels &kernels)
      : plan_(plan), settings_(settings), slots_(slots), kernels_(kernels), reductions_(plan, settings, slots, kernels) {}

  /// Allocates the pool where one is needed. In a world of one nothing is reduced: the slot is the contribution.
  Status open(std::shared_ptr<Group> group, const MemorySource &source);
  /// Ends reductions and gives memory back.
  void close();

  Status acquire(int64_t id, void **out_data, int64_t *out_accumulate);
  Status ready(int64_t id, const char *name, const void *grad, int64_t offset, int64_t count);
  Status set_weight(double weight);

  /// Counts what is missing as zero, reduces everything and waits for it.
  Task finish();
  /// Ends the step.
  void reset();

  /// True while a tensor is acquired and not yet all ready.
  bool any_acquired() const { return acquired_count_ > 0; }
  /// True when gradients of this step were given.
  bool started() const { return started_; }

  /// @name What finish() found out
  /// @{
  int64_t unfilled_count() const { return unfilled_count_; }
  bool finite() const { return alone_ ? finite_ : reductions_.finite(); }
  double weight_sum() const { return alone_ ? weight_ : reductions_.weight_sum(); }
  kernels::ExactSum squares() const;
  /// @}

  const BucketPool &pool() const { return pool_; }
  bool overlapping() const { return reductions_.overlapping(); }
  int64_t stalled_nbytes() const { return stalled_nbytes_.load(std::memory_order_relaxed); }

 private:
  struct Tensor {
    ReadyRanges ready;
    bool acquired = false;
  };
  struct Bucket {
    std::byte *data = nullptr;  ///< its elements; nullptr: no buffer was taken yet
    int64_t missing = 0;        ///< elements that are not ready
  };

  bool pooled() const { return !alone_ && settings_.stage >= 2; }
  bool weighted() const { return settings_.divisor == ZERO_DIVISOR_WEIGHTS; }
  float *place(int64_t id, int64_t offset);
  Status need_buffer(Bucket &bucket, int64_t index);
  Task await_buffer(Bucket &bucket, int64_t index);
  bool take_free(Bucket &bucket, int64_t index);
  void clear_gaps(const Bucket &bucket, int64_t index);
  Status give_back_ended();
  void start_step();
  void take_in(float *place, const float *values, int64_t count);
  void take_in_weighted(float *place, const float *values, int64_t count);
  void fill_missing(int64_t index);
  void submit_complete();

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const HostKernels &kernels_;
  Reductions reductions_;
  BucketPool pool_;
  std::shared_ptr<Group> group_;
  bool alone_ = false;
  std::vector<Tensor> tensors_;
  std::vector<Bucket> buckets_;
  size_t next_submitted_ = 0;  ///< place in the plan's order of the next bucket to submit
  int64_t acquired_count_ = 0;
  int64_t unfilled_count_ = 0;
  double weight_ = 1;
  bool started_ = false;
  bool weight_sent_ = false;
  bool finite_ = true;
  std::atomic<int64_t> stalled_nbytes_{0};
};

}  // namespace zero
