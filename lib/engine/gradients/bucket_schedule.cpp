/// @file Bucket buffers, and bringing buckets to their reductions in the agreed order.
#include "engine/gradients/bucket_schedule.h"

#include <new>
#include <span>
#include <utility>

namespace zero {
namespace {

/// How long a free buffer is waited for while a reduction is under way. Longer only if the pool
/// must not grow: a rank that brings its gradients in another order may be waiting for this one.
constexpr int64_t kWaitMs = 1000;

}  // namespace

Status BucketSchedule::open(std::shared_ptr<Group> group, const MemorySource &source) {
  group_ = std::move(group);
  buckets_.resize(plan_.buckets().size());
  std::vector<int64_t> sizes;
  for (const int64_t index : plan_.order()) {
    at(index).dtype = slots_.place(slots_.grad(), index).dtype;
    sizes.push_back(nbytes_of(index));
  }
  if (state_.delays) ZERO_TRY(make_waiting(source));
  return pooled() ? pool_.open(source, sizes, plan_.held_bucket_count(), settings_.buckets.pool_limit) : Status();
}

int64_t BucketSchedule::waiting_nbytes(std::span<const Format> formats) const {
  int64_t nbytes = 0;
  for (const int64_t index : plan_.order()) {
    const PlannedBucket &bucket = plan_.bucket(index);
    nbytes += Arena::view_nbytes(bucket.flat.count() * dtype_nbytes(formats[static_cast<size_t>(bucket.space)].grad));
  }
  return settings_.delays_grads ? nbytes : 0;
}

Status BucketSchedule::make_waiting(const MemorySource &source) {
  int64_t nbytes = 0;
  for (const int64_t index : plan_.order()) nbytes += Arena::view_nbytes(nbytes_of(index));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_GRAD, nbytes, &waiting_));
  for (const int64_t index : plan_.order()) at(index).waiting = waiting_.take(Arena::view_nbytes(nbytes_of(index)));
  return {};
}

void BucketSchedule::expect(int64_t index, int64_t count, RowMarks rows) {
  at(index).expected = count;
  at(index).rows = rows;
}

void BucketSchedule::close() {
  if (group_ != nullptr && pool_.mapping() != nullptr) group_->transport().unshare(*pool_.mapping());
  group_.reset();
  pool_.release();
  waiting_.release();
  buckets_.clear();
}

Status BucketSchedule::reap() {
  return reductions_.reap([this](int64_t index) {
    if (pooled()) give_back(index);
  });
}

void BucketSchedule::give_back(int64_t index) {
  if (at(index).data != nullptr) pool_.give_back(at(index).data);
  at(index).data = nullptr;
}

/// A buffer of the pool holds old values, also in the gaps between tensors.
bool BucketSchedule::take_free(int64_t index, std::byte *own) {
  Bucket &bucket = at(index);
  if (bucket.data == nullptr) bucket.data = own;
  if (bucket.data != nullptr) return true;
  bucket.data = pool_.take(nbytes_of(index));
  if (bucket.data == nullptr) return false;
  const int64_t element = dtype_nbytes(bucket.dtype);
  for (const Range &gap : plan_.bucket(index).gaps) kernels_.clear(bucket.data + gap.begin * element, gap.count() * element);
  return true;
}

/// Waits only for a reduction under way: its end does not depend on the next calls of this rank.
Status BucketSchedule::need_buffer(int64_t index, std::byte *own) {
  if (at(index).data != nullptr) return {};
  const Deadline wait = Deadline::after_ms(kWaitMs);
  Pacing pacing;
  for (;;) {
    ZERO_TRY(reap());
    if (take_free(index, own)) return {};
    if (!reductions_.under_way() || (wait.passed() && !pool_.at_limit())) return pool_.grow(nbytes_of(index), &at(index).data);
    OperationQueue &queue = reductions_.queue();
    const Listening listening(queue.doorbell());
    const Look look = queue.progress(&reductions_.oldest());
    if (!reductions_.oldest().done() && queue.hears(look, listening.bell())) pacing.pause(listening);
  }
}

Task BucketSchedule::await_buffer(int64_t index, std::byte *own) {
  while (at(index).data == nullptr) {
    ZERO_CO_TRY(reap());
    if (take_free(index, own)) break;
    if (!reductions_.under_way()) co_return pool_.grow(nbytes_of(index), &at(index).data);
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_AWAIT(end);
  }
  co_return Status();
}

/// Memory for an operation may be short; the next call tries again.
void BucketSchedule::submit(int64_t completed) {
  if (!state_.reduces()) return;
  if (completed >= 0 && !all_submitted() && plan_.order()[next_submitted_] != completed) {
    stalled_nbytes_.fetch_add(nbytes_of(completed), std::memory_order_relaxed);
  }
  try {
    if (settings_.weighted() && !weight_sent_) reductions_.submit_weight(state_.contribution_weight());
    weight_sent_ = true;
    submit_in_turn(state_.goal());
  } catch (const std::bad_alloc &) {
    return;
  }
}

void BucketSchedule::submit_in_turn(Reductions::Goal goal) {
  for (; !all_submitted(); ++next_submitted_) {
    const int64_t index = plan_.order()[next_submitted_];
    if (at(index).missing > 0) return;
    reductions_.submit(index, {bring(index), at(index).rows}, goal);
  }
}

/// Contributions that waited are copied, because updates read the slots at addresses that stay.
std::byte *BucketSchedule::bring(int64_t index) {
  if (!state_.delays) return at(index).data;
  std::byte *slot = slots_.place(slots_.grad(), index).at(0);
  kernels_.copy(slot, at(index).waiting, at(index).dtype, plan_.bucket(index).flat.count(), nbytes_of(index));
  return slot;
}

void BucketSchedule::bring_all() {
  for (const int64_t index : plan_.order()) (void)bring(index);
}

Status BucketSchedule::check_submitted() const {
  ZERO_CHECK(all_submitted(), ZERO_E_OUT_OF_MEMORY, "out of memory for the operations of a step");
  return {};
}

Task BucketSchedule::wait() {
  ZERO_CO_TRY(check_submitted());
  co_return co_await wait_for_submitted();
}

Task BucketSchedule::wait_for_submitted() {
  while (reductions_.under_way()) {
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_AWAIT(end);
    ZERO_CO_TRY(reap());
  }
  co_return Status();
}

Task BucketSchedule::see_submitted_end() {
  if (!reductions_.under_way()) co_return Status();
  OperationEnd end(reductions_.queue(), reductions_.newest());
  co_return co_await end;
}

Task BucketSchedule::reduce_sums() {
  reductions_.end_micro_step();
  next_submitted_ = 0;
  submit_in_turn(Reductions::Goal::finish);
  co_return co_await wait();
}

void BucketSchedule::begin_micro_step() {
  for (Bucket &bucket : buckets_) bucket.missing = bucket.expected;
  next_submitted_ = 0;
  weight_sent_ = false;
}

void BucketSchedule::begin_step() {
  for (const int64_t index : plan_.order()) {
    at(index).data = pooled() ? nullptr : state_.delays ? at(index).waiting : slots_.place(slots_.grad(), index).at(0);
  }
  begin_micro_step();
}

}  // namespace zero
