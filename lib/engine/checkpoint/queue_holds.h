/// @file QueueHolds: stops the queues of several objects while a task in another queue works with
/// these objects. Knows queues only.
#pragma once

#include "core/task.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace zero {

class QueueHolds {
 public:
  /// `lead`: the queue in which the holding task runs.
  explicit QueueHolds(std::shared_ptr<OperationQueue> lead) : lead_(std::move(lead)) {}
  QueueHolds(const QueueHolds &) = delete;
  ~QueueHolds() { release(); }

  /// Enters a task into the queue. Tasks that are submitted later do not begin until release().
  void take(std::shared_ptr<OperationQueue> queue);
  /// Waits until all tasks that were submitted to the held queues earlier have ended.
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
