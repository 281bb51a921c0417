/// @file The queue of an exchange behind steps.
#include "engine/replicas/delayed_exchange.h"

#include <utility>

namespace zero {

Status DelayedExchange::open(std::shared_ptr<Group> group, int64_t count, bool overlaps, const MemorySource &source) {
  group_ = std::move(group);
  group_->set_caller(Caller::sync);
  overlaps_ = overlaps;
  if (count == 0) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes(count), &memory_));
  values_ = reinterpret_cast<float *>(memory_.data());
  return {};
}

/// Ranks that come to the use of these values would wait for this one, which has left by then.
void DelayedExchange::close() {
  if (operation_ != nullptr && !operation_->done()) {
    group_->fail(Status::error(ZERO_E_PEER_LEFT, "a rank released its optimizer while replicas exchanged parameters behind its steps"));
    (void)queue_->wait(operation_);
  }
  // The thread may be asleep on the group's doorbell, which goes with the group.
  if (group_ != nullptr) watch_.off(queue_, group_->place().local_rank);
  end();
  memory_.release();
  values_ = nullptr;
  group_.reset();
}

Task DelayedExchange::begin(size_t fragment, int64_t delay, Task exchange) {
  fragment_ = fragment;
  left_ = delay;
  group_->set_caller(Caller::sync);
  operation_ = queue_->submit(std::move(exchange));
  if (overlaps_ && watch_.on(queue_, group_->place().local_rank)) co_return Status();
  co_return co_await wait();
}

Task DelayedExchange::wait() {
  if (operation_ == nullptr) co_return Status();
  OperationEnd end(*queue_, *operation_);
  ZERO_CO_AWAIT(end);
  co_return operation_->status();
}

void DelayedExchange::end() {
  operation_.reset();
  left_ = 0;
}

}  // namespace zero
