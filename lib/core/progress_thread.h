/// @file Progress threads: one for the process, or one for each of the ranks that are its threads, at most as many as cores. Each is
/// started when first asked for and advances the queues that were given to it while their owners compute. Knows nothing of what the
/// operations do.
#pragma once

#include "core/task.h"

#include <cstdint>
#include <memory>

namespace zero {

/// Has a progress thread advance the queue until it is empty. Queues of one lane (a rank's number on its host) share a thread. Cheap when
/// it is being watched already. Returns false when the thread could not be started; progress then happens only inside library calls.
bool watch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane);

/// Waits until the lane's thread has let go of a queue whose operations have all ended. Call it before freeing what they referred to: the
/// thread may still be asleep on a doorbell that belonged to one of them.
void unwatch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane);

/// Whether a queue may still be with a progress thread.
class QueueWatch {
 public:
  /// As watch_queue, after each operation that is to be advanced.
  bool on(const std::shared_ptr<OperationQueue> &queue, int64_t lane) {
    const bool watched = watch_queue(queue, lane);
    was_watched_ = was_watched_ || watched;
    return watched;
  }
  /// As unwatch_queue, where that is needed.
  void off(const std::shared_ptr<OperationQueue> &queue, int64_t lane) {
    if (was_watched_) unwatch_queue(queue, lane);
    was_watched_ = false;
  }

 private:
  bool was_watched_ = false;
};

}  // namespace zero
