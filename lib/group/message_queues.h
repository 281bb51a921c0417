/// @file MessageQueues: the queues that the messages of a group run in. Knows peers and numbers;
/// nothing of what a message is.
#pragma once

#include "core/task.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace zero {

class MessageQueues {
 public:
  explicit MessageQueues(int64_t size) : size_(size), sent_(static_cast<size_t>(size)), received_(static_cast<size_t>(size)) {}
  MessageQueues(const MessageQueues &) = delete;

  /// The queues of messages to one peer, and from one peer.
  const std::shared_ptr<OperationQueue> &send(int64_t peer) { return queues()[static_cast<size_t>(peer)]; }
  const std::shared_ptr<OperationQueue> &recv(int64_t peer) { return queues()[static_cast<size_t>(size_ + peer)]; }
  /// Numbers of the last message to a peer, and from it. Only for a thread that runs one.
  uint64_t &sent(int64_t peer) { return sent_[static_cast<size_t>(peer)]; }
  uint64_t &received(int64_t peer) { return received_[static_cast<size_t>(peer)]; }

  /// Advances what was given to the queues, but for one that the caller is advancing.
  void progress(const OperationQueue *own = nullptr);
  /// Messages that have begun and not ended. Abandoned ones may outlive the group.
  const std::shared_ptr<std::atomic<int64_t>> &under_way() const { return under_way_; }

 private:
  using Queues = std::vector<std::shared_ptr<OperationQueue>>;
  const Queues &queues();

  const int64_t size_;
  std::once_flag made_;
  std::atomic<bool> exist_{false};
  /// To each peer and then from each, from the first message on: most groups carry none.
  Queues queues_;
  std::vector<uint64_t> sent_;
  std::vector<uint64_t> received_;
  const std::shared_ptr<std::atomic<int64_t>> under_way_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace zero
