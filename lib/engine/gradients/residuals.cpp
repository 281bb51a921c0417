/// @file The two generations of residuals.
#include "engine/gradients/residuals.h"

#include "core/default_floats.h"

#include <algorithm>
#include <utility>

namespace zero {
namespace {

/// The part of this cut of a bucket whose results a replica makes.
Range results_in_cut(Range cut, int64_t replica, int64_t replicas) {
  const Range made = CodedMean::results_of(cut.count(), replica, replicas);
  return {cut.begin + made.begin, cut.begin + made.end};
}

}  // namespace

Residuals::Bucket Residuals::bucket_of(const Plan &plan, int64_t index, int64_t replicas) {
  const int64_t own = plan.bucket(index).own.count();
  return {.sent = own, .result = CodedMean::most_results(own, replicas)};
}

int64_t Residuals::nbytes(const Plan &plan, int64_t replicas) {
  int64_t nbytes = 0;
  for (const int64_t index : plan.order()) {
    nbytes += 2 * Arena::view_nbytes(bucket_of(plan, index, replicas).count() * static_cast<int64_t>(sizeof(float)));
  }
  return nbytes;
}

Status Residuals::open(const Plan &plan, int64_t replicas, const MemorySource &source) {
  if (nbytes(plan, replicas) == 0) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes(plan, replicas), &memory_));
  buckets_.resize(plan.buckets().size());
  for (const int64_t index : plan.order()) {
    Bucket bucket = bucket_of(plan, index, replicas);
    const auto take = [&] {
      return reinterpret_cast<float *>(memory_.take(Arena::view_nbytes(bucket.count() * static_cast<int64_t>(sizeof(float)))));
    };
    bucket.now = take();
    bucket.next = take();
    buckets_[static_cast<size_t>(index)] = bucket;
  }
  forget();
  return {};
}

void Residuals::close() {
  memory_.release();
  buckets_.clear();
}

CodingLoss Residuals::of(int64_t index) {
  if (!kept()) return {};
  Bucket &bucket = buckets_[static_cast<size_t>(index)];
  const float *from = std::exchange(bucket.reduced, true) ? bucket.next : bucket.now;
  return {from, bucket.next, from + bucket.sent, bucket.next + bucket.sent};
}

void Residuals::end_step(bool keep, bool in_full) {
  if (keep) zero_ = in_full;
  for (Bucket &bucket : buckets_) {
    if (std::exchange(bucket.reduced, false) && keep) std::swap(bucket.now, bucket.next);
  }
}

/// Exact where the ratio is a power of two, as it is when the library changes the scale.
void Residuals::follow_loss_scale(double scale) {
  const auto factor = static_cast<float>(scale / std::exchange(scale_, scale));
  if (factor == 1) return;
  const DefaultFloats floats;
  for (const Bucket &bucket : buckets_)
    std::transform(bucket.now, bucket.now + bucket.count(), bucket.now, [factor](float value) { return value * factor; });
}

void Residuals::forget() {
  for (const Bucket &bucket : buckets_) std::fill_n(bucket.now, bucket.count(), 0.0F);
  zero_ = true;
}

/// `first`: the place of the first element in the memory of its bucket.
Residuals::Part Residuals::part_of(const Plan &plan, int64_t id, Range elements, int64_t first) const {
  if (elements.empty() || !kept()) return {};
  float *losses = buckets_[static_cast<size_t>(plan.param(id).bucket)].now;
  return losses != nullptr ? Part{elements, losses + first} : Part{};
}

Residuals::Part Residuals::sums_of(const Plan &plan, int64_t id) const {
  const PlannedParam &placed = plan.param(id);
  if (placed.bucket < 0) return {};
  const PlannedBucket &bucket = plan.bucket(placed.bucket);
  const Range elements = plan.own_param_cut(id);
  return part_of(plan, id, elements, placed.flat.begin - bucket.flat.begin + elements.begin - bucket.own.begin);
}

Residuals::Part Residuals::results_of(const Plan &plan, int64_t id, int64_t replica, int64_t replicas) const {
  const PlannedParam &placed = plan.param(id);
  if (placed.bucket < 0) return {};
  const PlannedBucket &bucket = plan.bucket(placed.bucket);
  const Range made = results_in_cut(bucket.own, replica, replicas);
  const Range elements = plan.part_of(id, made);
  return part_of(plan, id, elements, bucket.own.count() + placed.flat.begin - bucket.flat.begin + elements.begin - made.begin);
}

Range Residuals::results_in(const Plan &plan, int64_t id, int64_t rank, int64_t replica, int64_t replicas) {
  const int64_t home = plan.param(id).bucket;
  return home < 0 ? Range{} : plan.part_of(id, results_in_cut(plan.bucket_cut(home, rank), replica, replicas));
}

void Residuals::note_written(double loss_scale) {
  scale_ = loss_scale;
  zero_ = false;
}

}  // namespace zero
