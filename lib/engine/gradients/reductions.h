/// @file Reductions: the operations that sum a step's gradients, bucket after bucket, in a queue
/// that the progress thread advances while the caller works. Knows the reduced slot; never who
/// filled a bucket or what the sums are for.
#pragma once

#include "core/progress_thread.h"
#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/settings.h"
#include "engine/gradients/micro_sums.h"
#include "engine/gradients/rank_weights.h"
#include "engine/gradients/reduce_strategies.h"
#include "engine/layout/plan.h"
#include "engine/stats/trace.h"
#include "engine/storage/slot_memory.h"
#include "kernels/exact_sum.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

/// Used by one thread at a time; operations may run on the progress thread. Their findings may be
/// read once none is under way.
class Reductions {
 public:
  /// The fate of a bucket's sum over ranks.
  enum class Goal {
    slot,      ///< divided into the gradient slot
    sum,       ///< added to the fp32 sums of this step
    sum_slot,  ///< added to them, then divided into the slot
    finish,    ///< nothing is reduced any more: the sums are divided into the slot
  };

  /// `rows` as in RowSums.
  Reductions(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, GivenRows &rows, Trace &trace)
      : plan_(plan),
        settings_(settings),
        slots_(slots),
        kernels_(kernels),
        trace_(trace),
        strategies_(plan, settings, slots, rows),
        micro_sums_(plan) {}

  /// `across` as in ReduceStrategies. `counted`, by bucket: its squares count towards the norm.
  Status open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, const MemorySource &source, std::vector<bool> counted);
  /// Bytes of workspace that open() takes. `formats`: those of the plan.
  int64_t workspace_nbytes(std::span<const Format> formats) const { return strategies_.workspace_nbytes(formats); }
  /// In stage 0: sums stay where they are made, as this rank's cuts, until give_sums().
  void keep_sharded_sums() { gathers_ = false; }
  /// Makes what is under way fail, and waits for its end.
  void stop();
  /// Waits for what is under way, at most until it fails at the deadline.
  void wait_to_the_end();
  /// Makes the memory for sums over micro-steps.
  Status keep_sums() { return micro_sums_.keep(source_); }

  /// Every rank's weight of the gradients that follow; must come before their buckets.
  void submit_weight(double weight);
  /// The bucket's contribution stays borrowed until the bucket has ended. Goal::finish does not
  /// read it.
  void submit(int64_t bucket, Contribution contribution, Goal goal);

  /// Makes sharded sums whole if they are to be, and expects the same of the next step. Only while
  /// nothing is under way.
  Task give_sums(bool whole);

  bool under_way() const { return next_ended_ < entries_.size(); }
  /// The operation to wait for next. Only while one is under way.
  const Operation &oldest() const { return *entries_[next_ended_].operation; }
  /// It ends after all others.
  const Operation &newest() const { return *entries_.back().operation; }
  OperationQueue &queue() { return *queue_; }
  /// A rank that waits in `group` advances the operations here meanwhile.
  void go_on_beside(Group &group) const { group.advance_beside(queue_); }

  /// Calls ended(bucket) for every bucket that has ended since the last call. Returns the first
  /// error.
  template <class Ended>
  Status reap(Ended &&ended) {
    while (under_way() && oldest().done()) {
      const Entry &entry = entries_[next_ended_++];
      ZERO_TRY(entry.operation->status());
      if (entry.bucket >= 0) ended(entry.bucket);
    }
    return {};
  }

  /// @name From one step to the next, as in ReduceStrategy. Only while nothing is under way
  /// @{
  void begin_step(const StepTerms &terms) { strategies_.begin_step(terms); }
  void end_micro_step();
  void end_step(bool applied);
  void forget() { strategies_.forget(); }
  CarriedState *carried(Carried kind) const { return strategies_.carried(kind); }
  CarriedPart carried_of(Carried kind, int64_t id, int64_t replica) const { return strategies_.carried_of(kind, id, replica); }
  /// @}

  /// The slots hold sums that were loaded, with this sum of weights. Finds what operations would.
  void take_sums(double weight, bool counts_squares);

  bool finite() const { return finite_; }
  double weight_sum() const { return weights_.sum(); }
  const kernels::ExactSum &squares() const { return squares_; }
  /// The bucket's squares count towards the norm.
  bool counts(int64_t bucket) const { return counted_[static_cast<size_t>(bucket)]; }
  /// Bytes that sums over micro-steps take. Any thread.
  int64_t sums_nbytes() const { return micro_sums_.nbytes(); }
  /// True when the progress thread took the queue at the last submission. Any thread.
  bool overlapping() const { return overlapping_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    int64_t bucket;  ///< -1: the weights
    std::shared_ptr<Operation> operation;
  };

  void submit_task(int64_t bucket, Task task);
  double divisor() const;
  Task reduce_bucket(int64_t index, Contribution contribution, Goal goal);
  Task sum_to_slot(int64_t index, Contribution contribution, bool *finite);
  Task add_to_sums(int64_t index, Contribution contribution);
  bool sums_to_slot(int64_t index);

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  Trace &trace_;
  ReduceStrategies strategies_;
  std::shared_ptr<Group> group_;
  MemorySource source_{};
  std::vector<bool> counted_;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  std::vector<Entry> entries_;  ///< in the order of submission; has room for all of a micro-step
  size_t next_ended_ = 0;
  bool gathers_ = false;  ///< sums go to all ranks at once
  std::atomic<bool> overlapping_{false};
  QueueWatch watch_;

  // Written by operations, which run one after another.
  MicroSums micro_sums_;
  RankWeights weights_;
  bool finite_ = true;
  kernels::ExactSum squares_;
};

}  // namespace zero
