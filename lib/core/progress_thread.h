/// @file The progress thread: one per process, started when first asked for, it advances the queues that were given to it while their
/// owners compute. Knows nothing of what the operations do.
#pragma once

#include "core/task.h"

#include <memory>

namespace zero {

/// Has the process's progress thread advance the queue until it is empty. Cheap when it is being watched already. Returns false when the
/// thread could not be started; progress then happens only inside library calls.
bool watch_queue(const std::shared_ptr<OperationQueue> &queue);

/// Waits until the thread has let go of a queue whose operations have all ended. Call it before freeing what they referred to: the thread
/// may still be asleep on a doorbell that belonged to one of them.
void unwatch_queue(const std::shared_ptr<OperationQueue> &queue);

}  // namespace zero
