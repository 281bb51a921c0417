/// @file BucketSchedule: the buckets of a step's gradients: their missing elements, the buffers of
/// contributions, the agreed order of reductions. Knows no values; never who brings them.
#pragma once

#include "core/clock.h"
#include "engine/gradients/bucket_pool.h"
#include "engine/gradients/micro_step_state.h"
#include "engine/gradients/reductions.h"
#include "engine/layout/plan.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace zero {

class BucketSchedule {
 public:
  BucketSchedule(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, const MicroStepState &state,
                 Reductions &reductions)
      : plan_(plan), settings_(settings), slots_(slots), kernels_(kernels), state_(state), reductions_(reductions) {}

  /// Allocates the pool where one is needed. `group`: of the reductions.
  Status open(std::shared_ptr<Group> group, const MemorySource &source);
  /// With delays: bytes of the memory in which contributions wait. `formats`: those of the plan.
  int64_t waiting_nbytes(std::span<const Format> formats) const;
  void close();
  /// A micro-step brings so many elements of the bucket, and marks `rows`.
  void expect(int64_t index, int64_t count, RowMarks rows);

  /// Contributions of stages 2 and 3 lie in buffers, all others in the gradient slot. With delays
  /// they wait in memory of their own before they are brought there.
  bool pooled() const { return !state_.alone && settings_.stage >= 2; }
  DType dtype(int64_t index) const { return at(index).dtype; }
  /// The bucket's contribution; nullptr: no buffer was taken yet.
  std::byte *data(int64_t index) const { return at(index).data; }
  /// @name Makes sure of a buffer: `own`, or where that is nullptr one of the pool
  /// @{
  Status need_buffer(int64_t index, std::byte *own);
  Task await_buffer(int64_t index, std::byte *own);
  /// @}
  /// The values in the buffer are needed no more.
  void give_back(int64_t index);

  /// Elements that are not ready, once per name.
  int64_t missing(int64_t index) const { return at(index).missing; }
  /// Elements became ready. True when none is missing any more.
  bool take(int64_t index, int64_t count) { return (at(index).missing -= count) == 0; }
  /// Begins the reductions of complete buckets whose turn it is. `completed`: the newest of them.
  void submit(int64_t completed = -1);
  /// Takes note of reductions that have ended. Returns the first error met.
  Status reap();
  Status check_submitted() const;
  /// Waits until every bucket is reduced.
  Task wait();
  /// Waits until what was submitted has ended.
  Task wait_for_submitted();
  /// The same, but leaves errors to wait_for_submitted().
  Task see_submitted_end();
  /// In a world of one, with delays: brings all contributions to their slots.
  void bring_all();
  /// Once micro-steps are summed: divides the sums into the slots.
  Task reduce_sums();

  void begin_micro_step();
  void begin_step();

  const BucketPool &pool() const { return pool_; }
  /// Bytes of buckets that were complete before their turn. Any thread.
  int64_t stalled_nbytes() const { return stalled_nbytes_.load(std::memory_order_relaxed); }

 private:
  struct Bucket {
    DType dtype = DType::f32;
    std::byte *data = nullptr;
    std::byte *waiting = nullptr;  ///< with delays: the memory of its contribution
    int64_t expected = 0;          ///< elements, once per name
    int64_t missing = 0;
    RowMarks rows;
  };

  Bucket &at(int64_t index) { return buckets_[static_cast<size_t>(index)]; }
  const Bucket &at(int64_t index) const { return buckets_[static_cast<size_t>(index)]; }
  int64_t nbytes_of(int64_t index) const { return plan_.bucket(index).flat.count() * dtype_nbytes(at(index).dtype); }
  bool all_submitted() const { return next_submitted_ == plan_.order().size(); }
  bool take_free(int64_t index, std::byte *own);
  void submit_in_turn(Reductions::Goal goal);
  Status make_waiting(const MemorySource &source);
  std::byte *bring(int64_t index);

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  const MicroStepState &state_;
  Reductions &reductions_;
  std::shared_ptr<Group> group_;
  BucketPool pool_;
  Arena waiting_;
  std::vector<Bucket> buckets_;
  size_t next_submitted_ = 0;  ///< place in the plan's order of the next bucket to submit
  bool weight_sent_ = false;   ///< in this micro-step
  std::atomic<int64_t> stalled_nbytes_{0};
};

}  // namespace zero
