/// @file Waits for gathers that continue after a step.
#include "engine/parameters/deferred_all_gather.h"

#include "core/task.h"

namespace zero {

void DeferredAllGather::open(std::shared_ptr<Group> group, int64_t bucket_count, bool allowed) {
  group_ = std::move(group);
  allowed_ = allowed;
  operations_.assign(static_cast<size_t>(bucket_count), nullptr);
  order_.clear();
  order_.reserve(operations_.size());
  next_ = 0;
}

void DeferredAllGather::submit(int64_t bucket, Task gather) {
  if (next_ == order_.size()) {
    order_.clear();
    next_ = 0;
  }
  operations_[static_cast<size_t>(bucket)] = queue_->submit(std::move(gather));
  order_.push_back(bucket);
  watched_ = watch_.on(queue_, group_->place().local_rank);
}

/// Gathers end in the order in which they were submitted. A failed gather stays in the list, so
/// that each later wait for its bucket or a later one returns its error.
Task DeferredAllGather::wait(int64_t bucket) {
  while (operations_[static_cast<size_t>(bucket)] != nullptr) {
    std::shared_ptr<Operation> &oldest = operations_[static_cast<size_t>(order_[next_])];
    OperationEnd end(*queue_, *oldest);
    ZERO_CO_AWAIT(end);
    ZERO_CO_TRY(oldest->status());
    oldest.reset();
    ++next_;
  }
  co_return Status();
}

Task DeferredAllGather::drain() {
  while (next_ < order_.size()) ZERO_CO_AWAIT(wait(order_.back()));
  co_return Status();
}

Status DeferredAllGather::finish() {
  Status status;
  for (size_t i = next_; i < order_.size(); ++i) {
    std::shared_ptr<Operation> &oldest = operations_[static_cast<size_t>(order_[i])];
    const Status ended = queue_->wait(oldest);
    if (status.ok()) status = ended;
    if (!status.ok()) continue;
    oldest.reset();
    ++next_;
  }
  return status;
}

/// Every rank has submitted the same gathers, so they end as soon as the slowest rank reaches them.
void DeferredAllGather::stop() {
  (void)finish();
  // The progress thread may be asleep on the group's doorbell, which is destroyed with the group.
  if (group_ != nullptr) watch_.off(queue_, group_->place().local_rank);
  group_.reset();
  operations_.clear();
  order_.clear();
  next_ = 0;
}

}  // namespace zero
