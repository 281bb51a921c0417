/// @file The library's side of a step's gradients: bucket buffers, and bringing buckets to their reductions in the agreed order.
#include "engine/gradients.h"

#include <cstring>
#include <new>

namespace zero {
namespace {

/// How long a free buffer is waited for while a reduction is under way. Longer only where the pool must not grow: a rank that brings its
/// gradients in another order may be waiting for this one.
constexpr int64_t kPatienceMs = 1000;

}  // namespace

void Gradients::clear_gaps(const Bucket &bucket, int64_t index) {
  for (const Range &gap : plan_.bucket(index).gaps) {
    std::memset(bucket.data + gap.begin * static_cast<int64_t>(sizeof(float)), 0, static_cast<size_t>(gap.count()) * sizeof(float));
  }
}

Status Gradients::give_back_ended() {
  return reductions_.reap([this](int64_t index) {
    if (!pooled()) return;
    pool_.give_back(buckets_[static_cast<size_t>(index)].data);
    buckets_[static_cast<size_t>(index)].data = nullptr;
  });
}

bool Gradients::take_free(Bucket &bucket, int64_t index) {
  if (bucket.data != nullptr) return true;
  bucket.data = pool_.take();
  if (bucket.data == nullptr) return false;
  clear_gaps(bucket, index);
  return true;
}

/// Waits only for a reduction that is under way: its end does not depend on what this rank does next.
Status Gradients::need_buffer(Bucket &bucket, int64_t index) {
  if (bucket.data != nullptr) return {};
  const Deadline patience = Deadline::after_ms(kPatienceMs);
  Backoff backoff;
  for (;;) {
    ZERO_TRY(give_back_ended());
    if (take_free(bucket, index)) return {};
    if (!reductions_.under_way() || (patience.passed() && !pool_.at_limit())) {
      ZERO_TRY(pool_.grow(&bucket.data));
      return {};
    }
    Doorbell *bell = reductions_.queue().doorbell();
    const uint32_t seen = bell != nullptr ? bell->sequence() : 0;
    reductions_.queue().progress();
    if (!reductions_.oldest().done()) backoff.pause(bell, seen);
  }
}

Task Gradients::await_buffer(Bucket &bucket, int64_t index) {
  for (;;) {
    ZERO_CO_RETURN_IF_ERROR(give_back_ended());
    if (take_free(bucket, index)) co_return Status();
    if (!reductions_.under_way()) co_return pool_.grow(&bucket.data);
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_TRY(end);
  }
}

void Gradients::start_step() {
  started_ = true;
  if (alone_ || !weighted() || weight_sent_) return;
  reductions_.submit_weight(weight_);
  weight_sent_ = true;
}

/// Memory for an operation may be short; the next call tries again.
void Gradients::submit_complete() {
  if (alone_) return;
  try {
    start_step();
    for (; next_submitted_ < plan_.order().size(); ++next_submitted_) {
      const int64_t index = plan_.order()[next_submitted_];
      const Bucket &bucket = buckets_[static_cast<size_t>(index)];
      if (bucket.missing > 0) return;
      reductions_.submit(index, reinterpret_cast<float *>(bucket.data));
    }
  } catch (const std::bad_alloc &) {
    return;
  }
}

void Gradients::fill_missing(int64_t index) {
  Bucket &bucket = buckets_[static_cast<size_t>(index)];
  for (int64_t id = plan_.bucket(index).first_param; id < plan_.bucket(index).end_param; ++id) {
    if (plan_.param(id).bucket != index) continue;
    tensors_[static_cast<size_t>(id)].ready.for_each_missing(plan_.param(id).flat.count(), [&](Range range) {
      std::memset(place(id, range.begin), 0, static_cast<size_t>(range.count()) * sizeof(float));
      unfilled_count_ += range.count();
    });
  }
  bucket.missing = 0;
}

Task Gradients::finish() {
  submit_complete();
  for (const int64_t index : plan_.order()) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    if (bucket.missing == 0) continue;
    if (bucket.data == nullptr) ZERO_CO_TRY(await_buffer(bucket, index));
    fill_missing(index);
    submit_complete();
  }
  if (alone_) co_return Status();
  ZERO_CO_CHECK(next_submitted_ == plan_.order().size(), ZERO_E_OUT_OF_MEMORY, "out of memory for the operations of a step");
  while (reductions_.under_way()) {
    OperationEnd end(reductions_.queue(), reductions_.oldest());
    ZERO_CO_TRY(end);
    ZERO_CO_RETURN_IF_ERROR(give_back_ended());
  }
  co_return Status();
}

}  // namespace zero
