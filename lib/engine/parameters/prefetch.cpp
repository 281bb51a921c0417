/// @file Predicts the next tensors that the caller acquires.
#include "engine/parameters/prefetch.h"

#include "core/partition.h"
#include "core/task.h"

#include <algorithm>

namespace zero {
namespace {

/// Size of a buffer, independent of the page size of this rank's host, because all ranks must
/// predict the same.
int64_t foreseen_nbytes(int64_t nbytes) { return round_up(nbytes, 4096); }

}  // namespace

void Prefetch::open(std::shared_ptr<Group> group, ParamPool *pool, int64_t most_nbytes, std::vector<int64_t> nbytes, Gather gather) {
  group_ = std::move(group);
  pool_ = pool;
  nbytes_ = std::move(nbytes);
  int64_t all = 0;
  for (const int64_t tensor : nbytes_) all += foreseen_nbytes(tensor);
  most_nbytes_ = std::min(most_nbytes, all);
  order_ = given_;
  std::erase_if(order_, [this](int64_t id) { return nbytes_[static_cast<size_t>(id)] == 0; });
  gather_ = std::move(gather);
}

/// Every rank began the same gathers in the same acquire, so they end as soon as the slowest rank
/// has made that call. If they failed instead, ranks that still wait for their tensor would fail
/// too.
void Prefetch::stop() {
  for (const Ahead &next : ahead_) {
    (void)queue_->wait(next.operation);
    pool_->give_back(next.whole);
  }
  ahead_.clear();
  foreseen_ = {};
  held_ = kNothing;
  most_acquired_ = 0;
  // The progress thread may be asleep on the group's doorbell, which is destroyed with the group.
  if (group_ != nullptr) watch_.off(queue_, group_->place().local_rank);
  group_.reset();
}

/// A forward pass without a backward pass, as in evaluation, starts the order again.
void Prefetch::follow(int64_t id) {
  if (position_ < order_.size() && order_[position_] == id) {
    ++position_;
  } else if (!order_.empty() && order_.front() == id) {
    position_ = 1;
    surprised_ = false;
  } else {
    surprised_ = true;
  }
  if (seen_.size() < kMostSeen) seen_.push_back(id);
}

Task Prefetch::take(int64_t id, std::byte **out) {
  *out = nullptr;
  follow(id);
  if (held_ != kNothing) foreseen_.give_back(held_);
  held_ = kNothing;
  if (ahead_.empty() || ahead_.front().id != id) {
    ZERO_CO_AWAIT(drop());
    held_ = foreseen_.take(foreseen_nbytes(nbytes_[static_cast<size_t>(id)]));
    co_return Status();
  }
  OperationEnd end(*queue_, *ahead_.front().operation);
  ZERO_CO_AWAIT(end);
  const Ahead taken = ahead_.front();
  ahead_.erase(ahead_.begin());
  held_ = taken.foreseen;
  if (!taken.operation->status().ok()) {
    pool_->give_back(taken.whole);
    co_return taken.operation->status();
  }
  *out = taken.whole;
  co_return Status();
}

/// The limit covers gathers that run ahead and free buffers. It applies to foreseen_, a model of
/// the pool in which a tensor is released when the next one is acquired. All ranks have the same
/// model, although they may release tensors at different times.
Status Prefetch::run_ahead() {
  if (surprised_ || held_ == kNothing) return {};
  const int64_t most = most_nbytes_ + foreseen_.nbytes(held_);
  int64_t acquired = pool_->used_nbytes();
  for (const Ahead &next : ahead_) acquired -= pool_->nbytes_of(next.whole);
  most_acquired_ = std::max(most_acquired_, acquired);
  pool_->trim(most_nbytes_ + most_acquired_);
  for (size_t at = position_ + ahead_.size(); at < order_.size(); ++at) {
    const int64_t id = order_[at];
    const int64_t need = foreseen_nbytes(nbytes_[static_cast<size_t>(id)]);
    if (foreseen_.nbytes_after(need) > most) return {};
    // Space is reserved before the gather begins, so that each gather in progress is recorded.
    ahead_.reserve(ahead_.size() + 1);
    Ahead next{id, foreseen_.take(need), nullptr, nullptr};
    ZERO_TRY(pool_->take(nbytes_[static_cast<size_t>(id)], &next.whole));
    next.operation = queue_->submit(gather_(id, next.whole));
    ahead_.push_back(std::move(next));
    (void)watch_.on(queue_, group_->place().local_rank);
  }
  return {};
}

Task Prefetch::drop() {
  while (!ahead_.empty()) {
    OperationEnd end(*queue_, *ahead_.front().operation);
    ZERO_CO_AWAIT(end);
    pool_->give_back(ahead_.front().whole);
    foreseen_.give_back(ahead_.front().foreseen);
    const Status status = ahead_.front().operation->status();
    ahead_.erase(ahead_.begin());
    if (!status.ok()) co_return status;
  }
  co_return Status();
}

void Prefetch::end_step() {
  if (!seen_.empty()) order_.swap(seen_);
  seen_.clear();
  position_ = 0;
  surprised_ = false;
}

}  // namespace zero
