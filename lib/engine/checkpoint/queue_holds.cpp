/// @file Holds queues. A thread that waits in a held queue makes progress in the lead queue.
#include "engine/checkpoint/queue_holds.h"

namespace zero {

class QueueHolds::Begun final : public Waitable {
 public:
  explicit Begun(Hold &hold) : hold_(hold) {}
  Status poll(bool *out_ready) override {
    if (!hold_.begun.load()) hold_.queue->progress();
    *out_ready = hold_.begun.load();
    return {};
  }

 private:
  Hold &hold_;
};

class QueueHolds::Released final : public Waitable {
 public:
  explicit Released(Hold &hold) : hold_(hold) {}
  Status poll(bool *out_ready) override {
    if (!hold_.released.load()) hold_.lead->progress();
    *out_ready = hold_.released.load();
    return {};
  }

 private:
  Hold &hold_;
};

Task QueueHolds::hold(std::shared_ptr<Hold> mine) {
  mine->begun.store(true);
  Released released(*mine);
  co_return co_await released;
}

void QueueHolds::take(std::shared_ptr<OperationQueue> queue) {
  const auto mine = std::make_shared<Hold>();
  mine->queue = std::move(queue);
  mine->lead = lead_;
  holds_.push_back(mine);
  (void)mine->queue->submit(hold(mine));
}

Task QueueHolds::begun() {
  for (const std::shared_ptr<Hold> &hold : holds_) {
    Begun begun(*hold);
    ZERO_CO_AWAIT(begun);
  }
  co_return Status();
}

void QueueHolds::release() {
  for (const std::shared_ptr<Hold> &hold : holds_) {
    hold->released.store(true);
    hold->queue->progress();
  }
  holds_.clear();
}

}  // namespace zero
