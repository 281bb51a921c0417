/// @file The operations of the reduction queue.
#include "engine/reductions.h"

#include "core/progress_thread.h"
#include "engine/agreement.h"

#include <bit>

namespace zero {

void Reductions::open(std::shared_ptr<Group> group) {
  group_ = std::move(group);
  entries_.reserve(static_cast<size_t>(plan_.bucket_count()) + 1);
  weight_bits_.resize(static_cast<size_t>(group_->size()));
  divisor_ = settings_.divisor == ZERO_DIVISOR_RANKS ? static_cast<double>(group_->size()) : 1.0;
}

void Reductions::stop() {
  if (under_way()) {
    group_->fail(Status::error(ZERO_E_PEER_LEFT, "rank %lld released its optimizer while gradients were being reduced",
                               static_cast<long long>(group_->rank())));
    for (; under_way(); ++next_ended_) (void)queue_->wait(entries_[next_ended_].operation);
  }
  // The thread may be asleep on the group's doorbell, which goes with the group.
  if (was_watched_) unwatch_queue(queue_);
  was_watched_ = false;
}

void Reductions::submit_task(int64_t bucket, Task task) {
  entries_.push_back({bucket, queue_->submit(std::move(task))});
  const bool allowed = settings_.overlap && group_->size() > 1 && !group_->transport().single_thread();
  const bool watched = allowed && watch_queue(queue_);
  overlapping_.store(watched, std::memory_order_relaxed);
  was_watched_ = was_watched_ || watched;
  if (!watched) queue_->progress();
}

void Reductions::submit_weight(double weight) { submit_task(-1, exchange_weights(weight)); }

void Reductions::submit(int64_t bucket, float *contribution) { submit_task(bucket, reduce_bucket(bucket, contribution)); }

Task Reductions::exchange_weights(double weight) {
  const auto bits = std::bit_cast<int64_t>(weight);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.dtype = static_cast<int32_t>(DType::f64);
  fingerprint.count = 1;
  ZERO_CO_TRY(tell_all(*group_, fingerprint, {&bits, 1}, weight_bits_));
  double sum = 0;
  for (const int64_t other : weight_bits_) sum += std::bit_cast<double>(other);
  weight_sum_ = sum;
  // All contributions are zero when the sum is: the step then ends with an error on every rank.
  divisor_ = sum > 0 ? static_cast<double>(static_cast<float>(sum)) : 1.0;
  co_return Status();
}

Task Reductions::reduce_bucket(int64_t index, float *contribution) {
  const PlannedBucket &bucket = plan_.bucket(index);
  float *own = slots_.f32(slots_.grad(), bucket, bucket.own.begin);
  bool finite = true;
  ReduceScatter call{contribution, own, &bucket.cuts, DType::f32, ReduceOp::sum, divisor_, &finite};
  ZERO_CO_TRY(reduce_scatter(*group_, call));
  finite_ = finite_ && finite;
  if (settings_.grad_norm) kernels_.add_squares(own, bucket.own.count(), squares_);
  if (settings_.stage == 0) ZERO_CO_TRY(all_gather(*group_, own, contribution, bucket.cuts, DType::f32));
  co_return Status();
}

void Reductions::clear() {
  entries_.clear();
  next_ended_ = 0;
  finite_ = true;
  weight_sum_ = 0;
  squares_ = {};
}

}  // namespace zero
