/// @file Reductions: the collectives that sum a step's gradients, bucket after bucket, in a queue of their own which the progress thread
/// advances while the caller works. Knows the reduced slot; never who filled a bucket or what the sums are for.
#pragma once

#include "core/task.h"
#include "engine/host_kernels.h"
#include "engine/plan.h"
#include "engine/settings.h"
#include "engine/slot_memory.h"
#include "group/collectives.h"
#include "kernels/exact_sum.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

/// Used by one thread at a time; operations may run on the progress thread. What they find out may be read once none is under way.
class Reductions {
 public:
  Reductions(const Plan &plan, const Settings &settings, const SlotMemory &slots, const HostKernels &kernels)
      : plan_(plan), settings_(settings), slots_(slots), kernels_(kernels) {}

  void open(std::shared_ptr<Group> group);
  /// Makes what is under way fail, and waits for its end.
  void stop();

  /// Every rank's weight of this step; must come before the step's buckets.
  void submit_weight(double weight);
  /// The bucket's contribution stays borrowed until the bucket has ended.
  void submit(int64_t bucket, float *contribution);

  bool under_way() const { return next_ended_ < entries_.size(); }
  /// The operation to wait for next. Only while one is under way.
  const Operation &oldest() const { return *entries_[next_ended_].operation; }
  OperationQueue &queue() { return *queue_; }

  /// Calls ended(bucket) for every bucket that has ended since the last call. Returns the first error met.
  template <class Ended>
  Status reap(Ended &&ended) {
    while (under_way() && oldest().done()) {
      const Entry &entry = entries_[next_ended_++];
      ZERO_TRY(entry.operation->status());
      if (entry.bucket >= 0) ended(entry.bucket);
    }
    return {};
  }

  /// Forgets the step. Only when none is under way.
  void clear();

  bool finite() const { return finite_; }
  double weight_sum() const { return weight_sum_; }
  const kernels::ExactSum &squares() const { return squares_; }
  /// True when the progress thread took the queue at the last submission. Any thread.
  bool overlapping() const { return overlapping_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    int64_t bucket;  ///< -1: the weights
    std::shared_ptr<Operation> operation;
  };

  void submit_task(int64_t bucket, Task task);
  Task exchange_weights(double weight);
  Task reduce_bucket(int64_t index, float *contribution);

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const HostKernels &kernels_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  std::vector<Entry> entries_;  ///< of this step, in the order they were submitted; has room for all of them
  size_t next_ended_ = 0;
  std::atomic<bool> overlapping_{false};
  bool was_watched_ = false;

  // Written by operations, which run one after another.
  double divisor_ = 1;
  double weight_sum_ = 0;
  bool finite_ = true;
  kernels::ExactSum squares_;
  std::vector<int64_t> weight_bits_;
};

/// Awaits the end of an operation in another queue, lending that queue the waiting thread.
class OperationEnd final : public Waitable {
 public:
  OperationEnd(OperationQueue &queue, const Operation &operation) : queue_(queue), operation_(operation) {}
  Status poll(bool *out_ready) override {
    queue_.progress();
    *out_ready = operation_.done();
    return {};
  }
  Doorbell *doorbell() override { return queue_.doorbell(); }

 private:
  OperationQueue &queue_;
  const Operation &operation_;
};

}  // namespace zero
