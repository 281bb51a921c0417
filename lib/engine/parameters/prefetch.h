/// @file Prefetch: gathers of stage 3 that run ahead of the caller, in the order of acquires in the
/// last step or in a given order. They run in a separate queue, which the progress thread advances.
/// Knows ids, bytes and buffers; each gather is a task that Prefetch is given.
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

/// Used by one thread at a time. All ranks acquire in the same order, so they predict the same
/// gathers.
class Prefetch {
 public:
  /// Makes the task that gathers a tensor.
  using Gather = std::function<Task(int64_t id, std::byte *whole)>;

  /// `most_nbytes` 0: no gather runs ahead. `nbytes`, by parameter: 0 if it is not gathered.
  void open(std::shared_ptr<Group> group, ParamPool *pool, int64_t most_nbytes, std::vector<int64_t> nbytes, Gather gather);
  /// Sets the order of the first step.
  void set_order(std::vector<int64_t> order) { given_ = std::move(order); }
  const std::vector<int64_t> &order() const { return given_; }
  /// Waits until all gathers in progress have ended, at most for the group's deadline, and gives
  /// their buffers back.
  void stop();

  /// Call it when the caller acquires a tensor that must be gathered. If its gather ran ahead, *out
  /// is its buffer. Otherwise *out is nullptr, and no gather is in progress any more.
  Task take(int64_t id, std::byte **out);
  /// Starts the next gathers. Call it after the acquired tensor has arrived.
  Status run_ahead();
  /// True if gathers run ahead of the caller now; the same on all ranks.
  bool runs_ahead() const { return !ahead_.empty(); }
  /// Waits for gathers in progress and gives their buffers back, because parameters are about to
  /// change.
  Task drop();
  /// The next step follows the order of this one.
  void end_step();

  int64_t most_nbytes() const { return most_nbytes_; }

 private:
  void follow(int64_t id);

  static constexpr size_t kNothing = SIZE_MAX;
  static constexpr size_t kMostSeen = 1 << 20;  ///< limit of seen_, which only steps clear

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

  std::vector<int64_t> given_;  ///< order of the first step
  std::vector<int64_t> order_;  ///< predicted order; empty: not known yet
  std::vector<int64_t> seen_;   ///< tensors acquired since the last step
  size_t position_ = 0;         ///< index in order_ of the next tensor
  bool surprised_ = false;      ///< the next tensor is not known
  std::vector<Ahead> ahead_;    ///< gathers of order_[position_] and the following
  /// A model of the pool in which each tensor is released before the next one is acquired.
  PoolSizes foreseen_;
  size_t held_ = kNothing;     ///< buffer in foreseen_ of the tensor that was acquired last
  int64_t most_acquired_ = 0;  ///< most bytes of the pool that the caller has held at one time
};

}  // namespace zero
