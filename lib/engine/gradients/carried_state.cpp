/// @file The two generations of carried values.
#include "engine/gradients/carried_state.h"

#include "core/default_floats.h"

#include <algorithm>
#include <utility>

namespace zero {
namespace {

int64_t view_nbytes_of(int64_t count) { return Arena::view_nbytes(count * static_cast<int64_t>(sizeof(float))); }

}  // namespace

int64_t CarriedState::nbytes(std::span<const int64_t> counts) {
  int64_t nbytes = 0;
  for (const int64_t count : counts) nbytes += 2 * view_nbytes_of(count);
  return nbytes;
}

std::vector<int64_t> CarriedState::own_counts(const Plan &plan) {
  std::vector<int64_t> counts(plan.buckets().size());
  for (const int64_t index : plan.order()) counts[static_cast<size_t>(index)] = plan.bucket(index).own.count();
  return counts;
}

void CarriedState::open(std::span<const int64_t> counts, Arena &memory) {
  if (nbytes(counts) == 0) return;
  for (const int64_t count : counts) {
    const auto take = [&] { return reinterpret_cast<float *>(memory.take(view_nbytes_of(count))); };
    runs_.push_back({count, take(), take()});
  }
  forget();
}

CarriedState::Change CarriedState::change(int64_t run) {
  Run &changed = runs_[static_cast<size_t>(run)];
  return {std::exchange(changed.changed, true) ? changed.next : changed.now, changed.next};
}

float *CarriedState::edit(int64_t run) {
  const auto [from, to] = change(run);
  if (from != to) std::copy_n(from, count(run), to);
  return to;
}

void CarriedState::end_step(bool keep, bool initial) {
  if (keep) initial_ = initial;
  for (Run &run : runs_) {
    if (std::exchange(run.changed, false) && keep) std::swap(run.now, run.next);
  }
}

/// Exact where the ratio is a power of two, as it is when the library changes the scale.
void CarriedState::follow_loss_scale(double scale) {
  const auto factor = static_cast<float>(scale / std::exchange(scale_, scale));
  if (factor == 1) return;
  const DefaultFloats floats;
  for (const Run &run : runs_) std::transform(run.now, run.now + run.count, run.now, [factor](float value) { return value * factor; });
}

void CarriedState::forget() {
  for (const Run &run : runs_) std::fill_n(run.now, run.count, 0.0F);
  initial_ = true;
}

void CarriedState::note_written(double loss_scale) {
  scale_ = loss_scale;
  initial_ = false;
}

CarriedPart CarriedState::part(int64_t run, Range elements, int64_t first) const {
  if (elements.empty() || !kept() || count(run) == 0) return {};
  return {elements, values(run) + first};
}

CarriedPart CarriedState::of_own_cut(const Plan &plan, int64_t id) const {
  const PlannedParam &placed = plan.param(id);
  if (placed.bucket < 0) return {};
  const PlannedBucket &bucket = plan.bucket(placed.bucket);
  const Range elements = plan.own_param_cut(id);
  return part(placed.bucket, elements, placed.flat.begin - bucket.flat.begin + elements.begin - bucket.own.begin);
}

}  // namespace zero
