/// @file Queues made with the first message.
#include "group/message_queues.h"

#include <utility>

namespace zero {

const MessageQueues::Queues &MessageQueues::queues() {
  std::call_once(made_, [this] {
    Queues made;
    for (int64_t i = 0; i < 2 * size_; ++i) made.push_back(std::make_shared<OperationQueue>());
    queues_ = std::move(made);
    exist_.store(true, std::memory_order_release);
  });
  return queues_;
}

void MessageQueues::progress(const OperationQueue *own) {
  if (!exist_.load(std::memory_order_acquire)) return;
  for (const std::shared_ptr<OperationQueue> &queue : queues_) {
    if (queue.get() != own) (void)queue->progress();
  }
}

}  // namespace zero
