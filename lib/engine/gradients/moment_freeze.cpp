/// @file The factors of first moments, their sums with gradients, and the elements that keep still.
#include "engine/gradients/moment_freeze.h"

#include "core/default_floats.h"
#include "core/partition.h"

#include <algorithm>
#include <cmath>

namespace zero {

/// Hyper-parameters are read here, because reductions run beside calls that set them.
void MomentFreeze::begin_step(int64_t calls, int64_t applied, double loss_scale) {
  if (!replicas_.code_freeze) return;
  begun_ = replicas_.codes(calls);
  stays_ = begun_ && applied > missed_;
  factors_.clear();
  for (const HyperSet &set : sets_) factors_.push_back(set.values().beta1 / (1 - set.values().beta1) * loss_scale);
}

/// visit(range, factor) for each line of a tensor in this rank's cut, counted within the cut, with
/// the factor of its set. Tensors of one bucket may belong to different sets.
template <class Visit>
void MomentFreeze::each_line(const PlannedBucket &bucket, Visit &&visit) const {
  for (const int64_t id : bucket.params) {
    const Range flat = plan_.param(id).flat;
    const Range part = intersect(bucket.own, {flat.begin - bucket.flat.begin, flat.end - bucket.flat.begin});
    const int64_t end = part.end - bucket.own.begin;
    for (int64_t begin = part.begin - bucket.own.begin; begin < end;) {
      const Range line = {begin, std::min(end, (begin / kLine + 1) * kLine)};
      visit(line, factors_[static_cast<size_t>(params_[id].options.set)]);
      begin = line.end;
    }
  }
}

const float *MomentFreeze::moments_of(int32_t slot, int64_t bucket) const {
  return reinterpret_cast<const float *>(slots_.place(*slots_.find(slot), bucket).at(plan_.bucket(bucket).own.begin));
}

void MomentFreeze::add(int64_t index, std::span<const uint8_t> full, double share, float *values) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  if (bucket.own.empty()) return;
  const DefaultFloats floats;
  const float *first = moments_of(ZERO_SLOT_FIRST_MOMENT, index);
  each_line(bucket, [&](Range line, double factor) {
    if (full[static_cast<size_t>(line.begin / kLine)] != 0) return;
    const auto weight = static_cast<float>(factor * share);
    for (int64_t i = line.begin; i < line.end; ++i) values[i] += weight * first[i];
  });
}

/// The mean of second moments is added in fp64, in order, so that it does not depend on the cut.
bool MomentFreeze::take_off(int64_t index, std::span<const uint8_t> full, float *values) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  if (bucket.own.empty()) return true;
  const DefaultFloats floats;
  const float *first = moments_of(ZERO_SLOT_FIRST_MOMENT, index);
  const float *second = moments_of(ZERO_SLOT_SECOND_MOMENT, index);
  bool finite = true;
  each_line(bucket, [&](Range line, double factor) {
    const bool coded = full[static_cast<size_t>(line.begin / kLine)] == 0;
    const auto weight = static_cast<float>(factor);
    double sum = 0;
    for (int64_t i = line.begin; i < line.end; ++i) sum += static_cast<double>(second[i]);
    const double least = kStill * sum / static_cast<double>(line.count());
    for (int64_t i = line.begin; i < line.end; ++i) {
      const bool still = stays_ && static_cast<double>(second[i]) <= least;
      if (still) values[i] = 0;
      if (coded || still) values[i] -= weight * first[i];
      finite &= std::isfinite(values[i]);
    }
  });
  return finite;
}

}  // namespace zero
