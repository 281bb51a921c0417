/// @file Holding queues. Who waits in a held queue advances the one that holds it.
#include "engine/checkpoint/queue_holds.h"

#include <utility>

namespace zero {

class QueueHolds::Begun final : public Waitable {
 public:
  explicit Begun(Hold &hold) : hold_(hold) {}
  Status poll(bool *out_ready) override {
    hold_.queue->progress();
    *out_ready = hold_.begun.load();
    return {};
  }

 private:
  Hold &hold_;
};

class QueueHolds::Released final : public Waitable {
 public:
  Released(Hold &hold, OperationQueue &lead) : hold_(hold), lead_(lead) {}
  Status poll(bool *out_ready) override {
    *out_ready = hold_.released.load();
    if (!*out_ready) lead_.progress();
    return {};
  }

 private:
  Hold &hold_;
  OperationQueue &lead_;
};

Task QueueHolds::hold(std::shared_ptr<Hold> mine, OperationQueue &lead) {
  mine->begun.store(true);
  Released released(*mine, lead);
  co_return co_await released;
}

Task QueueHolds::take(std::shared_ptr<OperationQueue> queue) {
  const auto mine = std::make_shared<Hold>();
  mine->queue = std::move(queue);
  holds_.push_back(mine);
  (void)mine->queue->submit(hold(mine, lead_));
  Begun begun(*mine);
  co_return co_await begun;
}

void QueueHolds::release() {
  for (const std::shared_ptr<Hold> &hold : holds_) {
    hold->released.store(true);
    hold->queue->progress();
  }
  holds_.clear();
}

}  // namespace zero
