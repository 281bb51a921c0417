/// @file The two generations of velocities.
#include "engine/gradients/momentum_correction.h"

#include "core/default_floats.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zero {
namespace {

int64_t view_nbytes_of(const Plan &plan, int64_t index) {
  return Arena::view_nbytes(plan.bucket(index).own.count() * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

int64_t MomentumCorrection::nbytes(const Plan &plan) {
  int64_t nbytes = 0;
  for (const int64_t index : plan.order()) nbytes += 2 * view_nbytes_of(plan, index);
  return nbytes;
}

Status MomentumCorrection::open(const Plan &plan, double momentum, const MemorySource &source) {
  momentum_ = static_cast<float>(momentum);
  if (nbytes(plan) == 0) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes(plan), &memory_));
  buckets_.resize(plan.buckets().size());
  for (const int64_t index : plan.order()) {
    const auto take = [&] { return reinterpret_cast<float *>(memory_.take(view_nbytes_of(plan, index))); };
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    bucket.count = plan.bucket(index).own.count();
    bucket.now = take();
    bucket.next = take();
  }
  forget();
  return {};
}

void MomentumCorrection::close() {
  memory_.release();
  buckets_.clear();
}

/// A velocity that is not finite is dropped, so that one such gradient does not spoil later ones.
float *MomentumCorrection::add(int64_t index, float *values) {
  if (buckets_.empty()) return nullptr;
  const DefaultFloats floats;
  Bucket &bucket = buckets_[static_cast<size_t>(index)];
  const bool first = !std::exchange(bucket.reduced, true);
  for (int64_t i = 0; i < bucket.count; ++i) {
    const float velocity = first ? momentum_ * bucket.now[i] + values[i] : bucket.next[i] + values[i];
    bucket.next[i] = std::isfinite(velocity) ? velocity : 0;
    if (first) values[i] = velocity;
  }
  return bucket.next;
}

void MomentumCorrection::end_step(bool keep) {
  for (Bucket &bucket : buckets_) {
    if (std::exchange(bucket.reduced, false) && keep) std::swap(bucket.now, bucket.next);
  }
}

/// Exact where the ratio is a power of two, as it is when the library changes the scale.
void MomentumCorrection::follow_loss_scale(double scale) {
  const auto factor = static_cast<float>(scale / std::exchange(scale_, scale));
  if (factor == 1) return;
  const DefaultFloats floats;
  for (const Bucket &bucket : buckets_)
    std::transform(bucket.now, bucket.now + bucket.count, bucket.now, [factor](float value) { return value * factor; });
}

void MomentumCorrection::forget() {
  for (const Bucket &bucket : buckets_) std::fill_n(bucket.now, bucket.count, 0.0F);
}

}  // namespace zero
