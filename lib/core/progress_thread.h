/// @file Progress threads: one for the process, or one for each rank that is a thread of it, at
/// most as many as cores. Each is started on first use and advances its queues while their owners
/// compute. Knows nothing of the operations.
#pragma once

#include "core/task.h"

#include <cstdint>
#include <memory>

namespace zero {

/// Lets a progress thread advance the queue until it is empty. Queues of one lane (a rank's number
/// on its host) share a thread. Cheap if the queue is watched already. Returns false if the thread
/// could not be started; progress then happens only inside library calls.
bool watch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane);

/// Waits until the lane's thread has released a queue whose operations have all ended. Call it
/// before freeing memory that they referred to: the thread may still sleep on a doorbell of one of
/// them.
void unwatch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane);

/// Records whether a progress thread may still hold a queue.
class QueueWatch {
 public:
  /// As watch_queue. Call it after each operation that should be advanced.
  bool on(const std::shared_ptr<OperationQueue> &queue, int64_t lane) {
    const bool watched = watch_queue(queue, lane);
    was_watched_ = was_watched_ || watched;
    return watched;
  }
  /// As unwatch_queue, if a thread may still hold the queue.
  void off(const std::shared_ptr<OperationQueue> &queue, int64_t lane) {
    if (was_watched_) unwatch_queue(queue, lane);
    was_watched_ = false;
  }

 private:
  bool was_watched_ = false;
};

}  // namespace zero
