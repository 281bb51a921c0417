/// @file QueueHolds: keeps the queues of several objects from going on while a task in another queue works with what belongs to them. Knows
/// queues only.
#pragma once

#include "core/task.h"

#include <atomic>
#include <memory>
#include <vector>

namespace zero {

class QueueHolds {
 public:
  /// `lead`: the queue that the holding task runs in.
  explicit QueueHolds(OperationQueue &lead) : lead_(lead) {}
  QueueHolds(const QueueHolds &) = delete;
  ~QueueHolds() { release(); }

  /// Awaits that all that was given to the queue before has ended. Nothing behind it begins until release().
  Task take(std::shared_ptr<OperationQueue> queue);
  void release();

 private:
  struct Hold {
    std::shared_ptr<OperationQueue> queue;
    std::atomic<bool> begun{false};
    std::atomic<bool> released{false};
  };
  class Begun;
  class Released;
  static Task hold(std::shared_ptr<Hold> mine, OperationQueue &lead);

  OperationQueue &lead_;
  std::vector<std::shared_ptr<Hold>> holds_;
};

}  // namespace zero
