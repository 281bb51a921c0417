/// @file Prefetch: gathers of stage 3 that run ahead of the caller, in the order in which tensors were acquired in the step before (or in a
/// given one), in a queue of their own which the progress thread advances. Knows ids, bytes and buffers; the gather itself is a task it is
/// given.
#pragma once

#include "core/progress_thread.h"
#include "core/task.h"
#include "engine/parameters/param_pool.h"
#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace zero {

/// Used by one thread at a time. All ranks acquire in the same order, so they foresee alike.
class Prefetch {
 public:
  /// Makes the task that gathers a tensor.
  using Gather = std::function<Task(int64_t id, std::byte *whole)>;

  /// `most_nbytes` 0: never ahead. `nbytes`, by parameter: 0 for those that are not gathered.
  void open(std::shared_ptr<Group> group, ParamPool *pool, int64_t most_nbytes, std::vector<int64_t> nbytes, Gather gather);
  /// The order of the first step.
  void set_order(std::vector<int64_t> order) { given_ = std::move(order); }
  const std::vector<int64_t> &order() const { return given_; }
  /// Waits for the end of what is under way, at most for the group's deadline, and gives buffers back.
  void stop();

  /// The caller acquires a tensor that has to be gathered. *out is its buffer when that ran ahead, otherwise nullptr and nothing is under
  /// way any more.
  Task take(int64_t id, std::byte **out);
  /// Starts the gathers that come next; comes after the tensor that was taken has arrived.
  Status run_ahead();
  /// Whether gathers run ahead of the caller now; the same on all ranks.
  bool runs_ahead() const { return !ahead_.empty(); }
  /// Ends what is under way and gives its buffers back: parameters are about to change.
  Task drop();
  /// The next step follows the order of this one.
  void end_step();

  int64_t most_nbytes() const { return most_nbytes_; }

 private:
  void follow(int64_t id);

  static constexpr size_t kNothing = SIZE_MAX;
  static constexpr size_t kMostSeen = 1 << 20;  ///< between two steps, of which there may be none

  struct Ahead {
    int64_t id;
    size_t foreseen;  ///< its buffer in foreseen_
    std::byte *whole;
    std::shared_ptr<Operation> operation;
  };

  std::shared_ptr<Group> group_;
  ParamPool *pool_ = nullptr;
  Gather gather_;
  int64_t most_nbytes_ = 0;
  std::vector<int64_t> nbytes_;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  QueueWatch watch_;

  std::vector<int64_t> given_;  ///< the order of the first step
  std::vector<int64_t> order_;  ///< what is expected; empty: nothing is known yet
  std::vector<int64_t> seen_;   ///< what was acquired since the last step
  size_t position_ = 0;         ///< in the order, of what comes next
  bool surprised_ = false;      ///< what comes next is not known
  std::vector<Ahead> ahead_;    ///< order_[position_] and on
  PoolSizes foreseen_;          ///< the pool of a caller that releases a tensor before it acquires the next
  size_t held_ = kNothing;      ///< what was acquired last, in foreseen_
  int64_t most_acquired_ = 0;   ///< bytes of the pool that the caller had at one time
};

}  // namespace zero
