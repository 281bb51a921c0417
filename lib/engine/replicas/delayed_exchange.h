/// @file DelayedExchange: an exchange between replicas that goes on while they make further steps,
/// its values, and the number of steps until they are used. Knows no parameters.
#pragma once

#include "core/progress_thread.h"
#include "core/task.h"
#include "group/group.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zero {

/// Used by one thread at a time; the exchange may run on the progress thread. One at a time.
class DelayedExchange {
 public:
  /// Bytes that open() takes, for at most `count` values.
  static int64_t nbytes(int64_t count) { return Arena::view_nbytes(count * static_cast<int64_t>(sizeof(float))); }
  /// `overlaps`: a progress thread may advance what runs in `group`.
  Status open(std::shared_ptr<Group> group, int64_t count, bool overlaps, const MemorySource &source);
  /// Makes what is under way fail, and waits for its end.
  void close();

  Group &group() const { return *group_; }
  bool overlaps() const { return overlaps_; }
  /// Only the exchange uses them while it runs.
  float *values() const { return values_; }

  bool under_way() const { return left_ > 0; }
  /// True if the end of the next step uses the values.
  bool due() const { return left_ == 1; }
  size_t fragment() const { return fragment_; }

  /// Starts it, for use at the end of the `delay`-th step from now on. Without a thread that
  /// advances it, it ends here.
  Task begin(size_t fragment, int64_t delay, Task exchange);
  void count_step() { left_ -= left_ > 0 ? 1 : 0; }
  /// Waits for the values of all replicas, if it is under way.
  Task wait();
  void end();

 private:
  std::shared_ptr<Group> group_;
  bool overlaps_ = false;
  Arena memory_;
  float *values_ = nullptr;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  std::shared_ptr<Operation> operation_;
  QueueWatch watch_;
  size_t fragment_ = 0;
  int64_t left_ = 0;  ///< steps until the end of which the values are used; 0: none is under way
};

}  // namespace zero
