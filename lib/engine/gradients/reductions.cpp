/// @file The operations of the reduction queue.
#include "engine/gradients/reductions.h"

#include <utility>

namespace zero {

Status Reductions::open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, const MemorySource &source,
                        std::vector<bool> counted) {
  group_ = std::move(group);
  source_ = source;
  counted_ = std::move(counted);
  entries_.reserve(2 * plan_.buckets().size() + 1);
  gathers_ = settings_.stage == 0;
  return strategies_.open(group_, std::move(across), source);
}

double Reductions::divisor() const {
  if (settings_.weighted()) return weights_.divisor();
  return settings_.divisor == ZERO_DIVISOR_ONE ? 1 : static_cast<double>(strategies_.ranks());
}

void Reductions::stop() {
  if (under_way()) {
    group_->fail(
        Status::error(ZERO_E_PEER_LEFT, "rank %lld released its optimizer while gradients were being reduced", lld(group_->rank())));
    wait_to_the_end();
  }
  // The thread may be asleep on the group's doorbell, which goes with the group.
  if (group_ != nullptr) watch_.off(queue_, group_->place().local_rank);
  group_.reset();
  strategies_.close();
}

void Reductions::wait_to_the_end() {
  for (; under_way(); ++next_ended_) (void)queue_->wait(entries_[next_ended_].operation);
}

void Reductions::submit_task(int64_t bucket, Task task) {
  entries_.push_back({bucket, queue_->submit(std::move(task))});
  const bool watched = settings_.overlaps_in(*group_) && watch_.on(queue_, group_->place().local_rank);
  overlapping_.store(watched, std::memory_order_relaxed);
  if (!watched) queue_->progress();
}

void Reductions::submit_weight(double weight) { submit_task(-1, weights_.exchange(*group_, strategies_.across(), weight)); }

void Reductions::submit(int64_t bucket, Contribution contribution, Goal goal) {
  submit_task(bucket, reduce_bucket(bucket, contribution, goal));
}

Task Reductions::reduce_bucket(int64_t index, Contribution contribution, Goal goal) {
  const TraceSpan span(trace_, "reduce bucket", Trace::Track::reductions, Trace::About::bucket, index);
  const PlannedBucket &bucket = plan_.bucket(index);
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  std::byte *own = place.at(bucket.own.begin);
  bool finite = true;
  group_->set_caller(goal == Goal::slot ? Caller::gradients : Caller::micro_sums);
  if (goal == Goal::slot) {
    ZERO_CO_AWAIT(sum_to_slot(index, contribution, &finite));
  } else {
    if (goal != Goal::finish) ZERO_CO_AWAIT(add_to_sums(index, contribution));
    if (goal == Goal::sum) co_return Status();
    finite = sums_to_slot(index);
  }
  finite_ = finite_ && finite;
  if (settings_.grad_norm && counts(index)) kernels_.add_squares(own, place.dtype, bucket.own.count(), squares_);
  if (gathers_) ZERO_CO_AWAIT(strategies_.gather(index));
  co_return Status();
}

Task Reductions::sum_to_slot(int64_t index, Contribution contribution, bool *finite) {
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  const Cuts cuts = plan_.bucket_cuts(index);
  ReduceScatter call{nullptr, place.at(plan_.bucket(index).own.begin), &cuts, place.dtype, ReduceOp::sum, divisor(), finite};
  call.weights = weights_.of(place.dtype);
  co_return co_await strategies_.sum(index, contribution, call);
}

/// Only the slot is looked at, in the end.
Task Reductions::add_to_sums(int64_t index, Contribution contribution) {
  const DType dtype = slots_.place(slots_.grad(), index).dtype;
  const Cuts cuts = plan_.bucket_cuts(index);
  ReduceScatter call{nullptr, micro_sums_.next(index), &cuts, dtype, ReduceOp::sum, 1, nullptr, DType::f32};
  call.what = kMicroSums;
  call.weights = weights_.of(dtype);
  ZERO_CO_AWAIT(strategies_.sum(index, contribution, call));
  micro_sums_.add_next(index, kernels_);
  co_return Status();
}

/// False when an element of the slot is not finite.
bool Reductions::sums_to_slot(int64_t index) {
  const PlannedBucket &bucket = plan_.bucket(index);
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  const void *source = micro_sums_.of(index);
  const DType out_dtype = place.dtype == DType::f32 ? DType{} : place.dtype;
  return group_->reducer()->reduce(
      {place.at(bucket.own.begin), &source, 1, bucket.own.count(), DType::f32, ReduceOp::sum, divisor(), out_dtype});
}

Task Reductions::give_sums(bool whole) {
  if (whole && !gathers_) {
    for (const int64_t index : plan_.order()) ZERO_CO_AWAIT(strategies_.gather(index));
  }
  gathers_ = whole;
  co_return Status();
}

void Reductions::take_sums(double weight, bool counts_squares) {
  for (const int64_t index : plan_.order()) {
    const Range own = plan_.bucket(index).own;
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    finite_ = finite_ && kernels_.all_within(place.at(own.begin), place.dtype, own.count());
    if (counts_squares && settings_.grad_norm && counts(index))
      kernels_.add_squares(place.at(own.begin), place.dtype, own.count(), squares_);
  }
  weights_.take(weight);
}

void Reductions::end_micro_step() {
  entries_.clear();
  next_ended_ = 0;
}

void Reductions::end_step(bool applied) {
  end_micro_step();
  micro_sums_.end_step();
  strategies_.end_step(applied);
  weights_.end_step();
  finite_ = true;
  squares_ = {};
}

}  // namespace zero
