/// @file QueueHolds: keeps the queues of several objects from going on while a task in another queue works with what belongs to them. Knows
/// queues only.
#pragma once

#include "core/task.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace zero {

class QueueHolds {
 public:
  /// `lead`: the queue that the holding task runs in.
  explicit QueueHolds(std::shared_ptr<OperationQueue> lead) : lead_(std::move(lead)) {}
  QueueHolds(const QueueHolds &) = delete;
  ~QueueHolds() { release(); }

  /// Takes a place in the queue: nothing that is submitted to it later begins until release().
  void take(std::shared_ptr<OperationQueue> queue);
  /// Awaits that all that was submitted to the queues before has ended.
  Task begun();
  void release();

 private:
  struct Hold {
    std::shared_ptr<OperationQueue> queue;
    std::shared_ptr<OperationQueue> lead;
    std::atomic<bool> begun{false};
    std::atomic<bool> released{false};
  };
  class Begun;
  class Released;
  static Task hold(std::shared_ptr<Hold> mine);

  const std::shared_ptr<OperationQueue> lead_;
  std::vector<std::shared_ptr<Hold>> holds_;
};

}  // namespace zero
