/// @file Reductions: the collectives that sum a step's gradients, bucket after bucket, in a queue of their own which the progress thread
/// advances while the caller works. Knows the reduced slot; never who filled a bucket or what the sums are for.
#pragma once

#include "core/progress_thread.h"
#include "core/task.h"
#include "engine/compute/coded_mean.h"
#include "engine/compute/step_kernels.h"
#include "engine/config/settings.h"
#include "engine/gradients/residuals.h"
#include "engine/gradients/row_sums.h"
#include "engine/layout/format.h"
#include "engine/layout/plan.h"
#include "engine/stats/trace.h"
#include "engine/storage/slot_memory.h"
#include "group/collectives.h"
#include "kernels/exact_sum.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

/// Used by one thread at a time; operations may run on the progress thread. What they find out may be read once none is under way.
class Reductions {
 public:
  /// What becomes of a bucket's sum over ranks.
  enum class Goal {
    slot,      ///< divided into the gradient slot
    sum,       ///< added to the fp32 sums of this step
    sum_slot,  ///< added to them, then divided into the slot
    finish,    ///< nothing is reduced any more: the sums are divided into the slot
  };

  /// What a rank adds to a bucket's sum.
  struct Contribution {
    std::byte *data = nullptr;  ///< of the whole bucket
    RowMarks rows = {};         ///< of buckets that are reduced by rows: those that data has
  };

  Reductions(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, Trace &trace)
      : plan_(plan), settings_(settings), slots_(slots), kernels_(kernels), trace_(trace), row_sums_(plan) {}

  /// `across`: the ranks that have the same shard in other replicas; nullptr: there is one replica. `counted`, by bucket: its squares count
  /// towards the norm.
  Status open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, const MemorySource &source, std::vector<bool> counted);
  /// Bytes of workspace that open() takes for sums over replicas. `formats`: those of the plan.
  int64_t workspace_nbytes(std::span<const Format> formats) const;
  /// Whether sums are over the ranks of all replicas. Only while nothing is under way.
  void sum_across(bool all) { sums_across_ = all; }
  /// Whether codes are sent in full, with what coding has lost. Only while nothing is under way.
  void send_in_full(bool full) { in_full_ = full; }
  Residuals &residuals() { return residuals_; }
  /// In stage 0: whether sums stay where they are made, as this rank's cuts, until gather(). Only while nothing is under way.
  void keep_sharded_sums(bool leave) { gathers_ = !leave; }
  bool keeps_sharded_sums() const { return !gathers_; }
  /// Makes what is under way fail, and waits for its end.
  void stop();
  /// Makes the memory for sums over micro-steps: 4 bytes per element that this rank owns, and as much as the largest cut again.
  Status keep_sums();

  /// Every rank's weight of the gradients that follow; must come before their buckets.
  void submit_weight(double weight);
  /// The bucket's contribution stays borrowed until the bucket has ended; empty with Goal::finish.
  void submit(int64_t bucket, Contribution contribution, Goal goal);

  /// Every rank's cuts of all buckets go to all of them. Only while nothing is under way.
  Task gather();

  bool under_way() const { return next_ended_ < entries_.size(); }
  /// The operation to wait for next. Only while one is under way.
  const Operation &oldest() const { return *entries_[next_ended_].operation; }
  OperationQueue &queue() { return *queue_; }
  /// Who waits for ranks in `group` advances the operations here meanwhile.
  void go_on_beside(Group &group) const { group.advance_beside(queue_); }

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

  /// Ends a micro-step, or the step. Only when none is under way.
  void end_micro_step();
  void end_step();

  bool finite() const { return finite_; }
  double weight_sum() const { return weight_sum_; }
  const kernels::ExactSum &squares() const { return squares_; }
  /// The bucket's squares count towards the norm.
  bool counts(int64_t bucket) const { return counted_[static_cast<size_t>(bucket)]; }
  /// Bytes that sums over micro-steps take. Any thread.
  int64_t sums_nbytes() const { return sums_nbytes_.load(std::memory_order_relaxed); }
  /// True when the progress thread took the queue at the last submission. Any thread.
  bool overlapping() const { return overlapping_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    int64_t bucket;  ///< -1: the weights
    std::shared_ptr<Operation> operation;
  };

  void submit_task(int64_t bucket, Task task);
  double divisor() const;
  Task sum_over_ranks(int64_t index, Contribution contribution, ReduceScatter call);
  Task sum_to_slot(int64_t index, Contribution contribution, bool *finite);
  Status open_codes();
  Task sum_codes(int64_t index, float *sum, double divisor, bool *finite);
  bool to_slot(int64_t index, const float *sum, double divisor) const;
  Task over_replicas(Task task);
  Task sum_over_replicas(int64_t index, float *sum, bool *finite);
  Task exchange_weights(double weight);
  Task reduce_bucket(int64_t index, Contribution contribution, Goal goal);
  Task add_to_sums(int64_t index, Contribution contribution);
  bool sums_to_slot(int64_t index) const;
  const float *weights_of(DType contributions) const;
  Task gather_bucket(int64_t index);
  float *sums_of(int64_t index) const { return sums_[static_cast<size_t>(index)]; }

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  Trace &trace_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> across_;
  bool sums_across_ = false;
  MemorySource source_{};
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  std::vector<Entry> entries_;  ///< of this micro-step, in the order they were submitted; has room for all of them
  size_t next_ended_ = 0;
  std::vector<bool> counted_;
  bool gathers_ = false;  ///< what is summed goes to all ranks at once
  std::atomic<bool> overlapping_{false};
  QueueWatch watch_;

  Arena sums_arena_;
  std::vector<float *> sums_;  ///< by bucket: of this rank's cut
  float *arrived_ = nullptr;   ///< a micro-step's sum before it is added
  std::atomic<int64_t> sums_nbytes_{0};

  Arena replica_arena_;
  float *replica_sum_ = nullptr;  ///< of a cut's 16-bit gradients, on its way to other replicas
  CodedMean coded_;
  RowSums row_sums_;
  std::vector<std::vector<uint8_t>> full_lines_;  ///< by bucket: of this rank's cut, those that are not coded
  std::vector<uint8_t> all_lines_;                ///< of the largest cut
  bool in_full_ = false;
  Residuals residuals_;

  // Written by operations, which run one after another.
  double weight_divisor_ = 1;
  double weight_sum_ = 0;
  std::vector<bool> summed_;  ///< by bucket: sums hold something of this step
  bool finite_ = true;
  kernels::ExactSum squares_;
  std::vector<int64_t> weight_bits_;
  std::vector<int64_t> all_weight_bits_;  ///< of all replicas' ranks
  std::vector<float> weights_;  ///< by rank: of the contributions that follow
  bool weighs_ = false;         ///< one of them is not 1
};

}  // namespace zero
