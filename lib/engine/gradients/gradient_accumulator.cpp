/// @file Values that are given, on their way into contributions and sums.
#include "engine/gradients/gradient_accumulator.h"

#include "core/default_floats.h"
#include "core/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace zero {

void GradientAccumulator::open(std::shared_ptr<Group> group, const MemorySource &source, bool norm_tells) {
  group_ = std::move(group);
  source_ = source;
  norm_tells_ = norm_tells;
  tensors_.resize(plan_.params().size());
  buckets_.resize(plan_.buckets().size());
  for (int64_t id = 0; id < params_.size(); ++id) {
    holder(id).names.push_back(id);
    if (by_rows(id) && params_[id].count > 0) holder(id).rows.resize(static_cast<size_t>(params_[id].shape[0]) + 1);
  }
  for (const int64_t index : plan_.order()) {
    int64_t count = 0;
    for (const int64_t id : plan_.bucket(index).params) count += params_[id].count * std::ssize(holder(id).names);
    schedule_.expect(index, count, holder(plan_.bucket(index).params.front()).rows);
  }
}

void GradientAccumulator::close() {
  group_.reset();
  local_.release();
  brought_.release();
  tensors_.clear();
  buckets_.clear();
}

std::byte *GradientAccumulator::within(std::byte *memory, int64_t id, int64_t offset, DType dtype) const {
  const PlannedParam &param = plan_.param(id);
  return memory + (param.flat.begin - plan_.bucket(param.bucket).flat.begin + offset) * dtype_nbytes(dtype);
}

Status GradientAccumulator::check_acquire(int64_t id) {
  const Tensor &mine = tensor(id);
  ZERO_CHECK(mine.ready.count() < params_[id].count, ZERO_E_STATE, "the gradient of %s is ready already; the step comes next",
             params_[id].name.c_str());
  ZERO_TRY(check_not_filled_elsewhere(id));
  const bool adds = holder(id).written.count() > 0 && !lands(home(id));
  ZERO_CHECK(!adds || !settings_.weighted() || mine.acquired, ZERO_E_UNSUPPORTED,
             "gradients are weighted, and elements of %s were given before, from memory of the caller%s: they cannot be added to in place; "
             "give the rest from memory of your own",
             params_[id].name.c_str(), holder(id).names.size() > 1 ? " or under a name that is tied to it" : "");
  return {};
}

/// All names of a tied tensor share their memory.
Status GradientAccumulator::check_not_filled_elsewhere(int64_t id) const {
  for (const int64_t name : tensors_[static_cast<size_t>(params_.holder(id))].names) {
    ZERO_CHECK(name == id || !tensors_[static_cast<size_t>(name)].acquired, ZERO_E_STATE,
               "the gradient of %s is acquired under the name %s, which is tied to it; give that to zero_optimizer_grad_ready first",
               params_[id].name.c_str(), params_[name].name.c_str());
  }
  return {};
}

/// Makes the values given so far the whole tensor's sum, so that the caller can add to all of it.
void GradientAccumulator::offer_sum(int64_t id) {
  clear_unwritten(id);
  Tensor &shared = holder(id);
  shared.written.clear();
  shared.written.add({0, params_[id].count});
  looks_again_ = true;
}

Status GradientAccumulator::acquire(int64_t id, void **out_data, int64_t *out_accumulate) {
  if (params_[id].count == 0) {
    *out_data = nullptr;
    *out_accumulate = 0;
    return {};
  }
  const int64_t index = home(id);
  ZERO_TRY(check_acquire(id));
  ZERO_TRY(schedule_.need_buffer(index, own_buffer(index)));
  Tensor &mine = tensor(id);
  const bool adds = !lands(index) && holder(id).written.count() > 0;
  if (adds && !mine.acquired) offer_sum(id);
  *out_data = within(schedule_.data(index), id, 0, schedule_.dtype(index));
  *out_accumulate = mine.acquired || adds ? 1 : 0;
  if (std::exchange(mine.acquired, true)) return {};
  ++state_.acquired_count;
  ++bucket(index).acquired;
  return {};
}

/// `copies`: from memory of the caller. Room to note the range is made first: a call that failed
/// after values were added would be made again, and add them twice.
Status GradientAccumulator::make_ready(int64_t id, bool copies) {
  const int64_t index = home(id);
  if (copies && !lands(index)) ZERO_TRY(check_not_filled_elsewhere(id));
  if (state_.kind != MicroStep::local || !lands(index)) ZERO_TRY(schedule_.need_buffer(index, own_buffer(index)));
  for (ReadyRanges *ranges : {&tensor(id).ready, &holder(id).filled, &holder(id).written}) ranges->make_room();
  state_.started = true;
  state_.given = true;
  return {};
}

Status GradientAccumulator::ready(int64_t id, const void *grad, int64_t offset, int64_t count, Device *device, void *stream) {
  if (count == 0) return {};
  const Range range{offset, offset + count};
  ZERO_CHECK(!tensor(id).ready.overlaps(range), ZERO_E_STATE,
             "the gradient of %s has elements in %lld .. %lld that are ready already in this step", params_[id].name.c_str(),
             lld(range.begin), lld(range.end - 1));
  ZERO_CHECK(grad != nullptr || tensor(id).acquired, ZERO_E_STATE,
             "grad is NULL, but the gradient of %s is not acquired; call zero_optimizer_grad_acquire first or give an address",
             params_[id].name.c_str());
  ZERO_TRY(make_ready(id, grad != nullptr));
  const auto *values = static_cast<const std::byte *>(grad);
  if (device != nullptr) {
    ZERO_TRY(source_.device == nullptr ? fetch(id, values, range, *device, stream) : bring(id, values, range, *device, stream));
  } else {
    take_in(id, grad != nullptr ? values : within(schedule_.data(home(id)), id, offset, schedule_.dtype(home(id))), range);
  }
  mark_rows(id, range);
  return end_ready(id, range);
}

/// In a LOCAL micro-step the values were added to sums elsewhere, so their buffer is free again.
Status GradientAccumulator::end_ready(int64_t id, Range range) {
  Tensor &mine = tensor(id);
  const int64_t index = home(id);
  mine.ready.add(range);
  if (mine.ready.count() == params_[id].count && std::exchange(mine.acquired, false)) {
    --state_.acquired_count;
    --bucket(index).acquired;
  }
  if (state_.kind == MicroStep::local && schedule_.pooled() && lands(index) && bucket(index).acquired == 0) schedule_.give_back(index);
  const bool complete = schedule_.take(index, range.count());
  if (complete) close_bucket(index);
  schedule_.submit(complete ? index : -1);
  return schedule_.reap();
}

Status GradientAccumulator::set_weight(double weight) {
  ZERO_CHECK(settings_.weighted(), ZERO_E_STATE, "weights are only used with ZERO_KEY_DIVISOR = ZERO_DIVISOR_WEIGHTS");
  const auto rounded = static_cast<float>(weight);
  ZERO_CHECK(weight >= 0 && std::isfinite(rounded) && (weight == 0) == (rounded == 0), ZERO_E_INVALID_ARGUMENT,
             "weight is %s, but must be 0 or a positive number that fp32 has, 2^-149 to 3.4e38", number_text(weight).c_str());
  ZERO_CHECK(!state_.given, ZERO_E_STATE, "the weight of a step or micro-step must be set before its first zero_optimizer_grad_ready");
  state_.weight = weight;
  state_.weight_set = true;
  return {};
}

/// Part by part: while one is taken in, the next one travels.
Status GradientAccumulator::fetch(int64_t id, const std::byte *grad, Range range, Device &device, void *stream) {
  const int64_t element = dtype_nbytes(schedule_.dtype(home(id)));
  const auto use = [&](const std::byte *values, int64_t begin, int64_t nbytes) {
    const int64_t first = range.begin + begin / element;
    take_in(id, values, {first, first + nbytes / element});
  };
  return device.fetch(grad, range.count() * element, stream, std::cref(use));
}

/// Part by part, through the one that stays on the device from the first of them on.
Status GradientAccumulator::bring(int64_t id, const std::byte *grad, Range range, Device &device, void *stream) {
  constexpr int64_t kPartNbytes = 2 << 20;
  const int64_t element = dtype_nbytes(schedule_.dtype(home(id)));
  if (brought_.data() == nullptr) ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_STAGING, kPartNbytes, &brought_));
  for (int64_t begin = range.begin; begin < range.end; begin += kPartNbytes / element) {
    const Range part{begin, std::min(range.end, begin + kPartNbytes / element)};
    const std::byte *from = grad + (begin - range.begin) * element;
    const auto fill = [&](std::byte *to, int64_t at, int64_t nbytes) { std::memcpy(to, from + at, static_cast<size_t>(nbytes)); };
    ZERO_TRY(device.store(brought_.data(), part.count() * element, stream, std::cref(fill)));
    take_in(id, brought_.data(), part);
  }
  return {};
}

GradientAccumulator::Landing GradientAccumulator::landing_of(int64_t id) {
  const int64_t index = home(id);
  const DType dtype = lands(index) ? sum_dtype(index) : schedule_.dtype(index);
  return {bucket(index), lands(index) ? bucket(index).local : schedule_.data(index), dtype,
          plan_.bucket(index).flat.count() * dtype_nbytes(dtype)};
}

/// Adds a range to the elements of this rank's contribution or local sum that hold something of
/// this step, and begins the others with it.
void GradientAccumulator::take_in(int64_t id, const std::byte *values, Range range) {
  const DefaultFloats floats;
  const DType dtype = schedule_.dtype(home(id));
  Tensor &shared = holder(id);
  const Landing at = landing_of(id);
  shared.filled.add(range);
  const bool in_place = values == within(at.memory, id, range.begin, at.dtype) && !lands(home(id));
  if (in_place && shared.written.covers(range)) return;  // the caller added to the sum
  shared.written.for_each_part(range, [&](Range part, bool written) {
    const std::byte *from = values + (part.begin - range.begin) * dtype_nbytes(dtype);
    arrive({at, within(at.memory, id, part.begin, at.dtype), from, dtype, part.count()}, written);
  });
  shared.written.add(range);
}

/// A rank without weight has nothing to contribute; its values are not read.
void GradientAccumulator::arrive(const Arrival &given, bool adds) {
  looks_again_ = looks_again_ || adds;
  if (state_.weight == 0) {
    if (!adds) kernels_.clear(given.to, given.count * dtype_nbytes(given.at.dtype));
  } else if (adds) {
    kernels_.add(given.to, given.at.dtype, given.values, given.dtype, given.count, arrival_factor(given.at.dtype));
  } else {
    take_first(given);
  }
}

/// A device looks at a whole bucket at once: a launch for every tensor takes longer than the look.
void GradientAccumulator::take_first(const Arrival &given) {
  const auto &[at, to, values, dtype, count] = given;
  const bool converts = at.dtype != dtype;
  if (converts) kernels_.convert(to, at.dtype, values, dtype, count, at.total_nbytes);
  const std::byte *from = converts ? to : values;
  if (const float factor = arrival_factor(at.dtype); factor != 1) {
    kernels_.scale(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), count, factor);
    return;
  }
  const bool looks = scans() && finite_ && !state_.accumulating;
  if (looks && from == to && source_.device != nullptr) {
    at.bucket.unseen = true;
  } else if (looks) {
    const float limit = scan_limit(at.dtype);
    finite_ = from == to ? kernels_.all_within(to, at.dtype, count, limit)
                         : kernels_.copy_within(to, from, at.dtype, count, limit, at.total_nbytes);
  } else if (from != to) {
    kernels_.copy(to, from, at.dtype, count, at.total_nbytes);
  }
}

/// N values of at most largest / 2N add up to less than the largest number of the slot's dtype,
/// however sums are rounded.
float GradientAccumulator::scan_limit(DType dtype) const {
  if (state_.alone) return kLargestFinite;
  constexpr float kLargestHalf = 65504;
  return (dtype == DType::f16 ? kLargestHalf : kLargestFinite) / (2 * static_cast<float>(group_->size()));
}

void GradientAccumulator::clear_unwritten(int64_t id) {
  const Landing at = landing_of(id);
  holder(id).written.for_each_missing(params_[id].count, [&](Range range) {
    kernels_.clear(within(at.memory, id, range.begin, at.dtype), range.count() * dtype_nbytes(at.dtype));
  });
}

/// Sums have memory of their own where they are not kept in the gradient slot itself.
Status GradientAccumulator::keep_sums() {
  if (local_.data() != nullptr) return {};
  const auto sums_nbytes = [this](int64_t index) {
    const int64_t elements = schedule_.pooled() || apart(index) ? plan_.bucket(index).flat.count() : 0;
    return Arena::view_nbytes(elements * dtype_nbytes(sum_dtype(index)));
  };
  int64_t nbytes = 0;
  for (const int64_t index : plan_.order()) nbytes += sums_nbytes(index);
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_ACCUMULATED, nbytes, &local_));
  for (const int64_t index : plan_.order()) {
    if (sums_nbytes(index) > 0) bucket(index).local = local_.take(sums_nbytes(index));
  }
  local_nbytes_.store(local_.nbytes(), std::memory_order_relaxed);
  return {};
}

Status GradientAccumulator::accumulate() {
  ZERO_TRY(keep_sums());
  state_.accumulating = true;
  looks_again_ = true;
  return {};
}

/// 16-bit gradients contribute their weighted mean, which has their range; the reduction multiplies
/// it by the sum of their weights.
void GradientAccumulator::contribute_sums(int64_t index) const {
  const DefaultFloats floats;
  const void *sums = buckets_[static_cast<size_t>(index)].local;
  const DType dtype = schedule_.dtype(index);
  const int64_t count = plan_.bucket(index).flat.count();
  const int64_t nbytes = count * dtype_nbytes(dtype);
  const double weight = state_.contribution_weight();
  if (!settings_.weighted() || dtype == DType::f32 || weight == 0) {
    kernels_.convert(schedule_.data(index), dtype, sums, sum_dtype(index), count, nbytes);
    return;
  }
  const auto divisor = static_cast<double>(static_cast<float>(weight));
  group_->reducer()->reduce({schedule_.data(index), &sums, 1, count, DType::f32, ReduceOp::sum, divisor, dtype, nbytes});
}

/// All of a bucket was given in this micro-step: local sums become the contribution.
void GradientAccumulator::close_bucket(int64_t index) {
  if (state_.kind == MicroStep::local) return;
  if (lands(index)) {
    for (const int64_t id : plan_.bucket(index).params) clear_unwritten(id);
    contribute_sums(index);
  }
  if (!std::exchange(bucket(index).unseen, false)) return;
  const DType dtype = schedule_.dtype(index);
  finite_ = kernels_.all_within(schedule_.data(index), dtype, plan_.bucket(index).flat.count(), scan_limit(dtype)) && finite_;
}

Task GradientAccumulator::fill_rest() {
  schedule_.submit();
  for (const int64_t index : plan_.order()) {
    if (schedule_.missing(index) == 0) continue;
    ZERO_CO_AWAIT(schedule_.await_buffer(index, own_buffer(index)));
    for (const int64_t id : plan_.bucket(index).params) clear_unwritten(id);
    schedule_.take(index, schedule_.missing(index));
    close_bucket(index);
    schedule_.submit(index);
  }
  co_return Status();
}

/// Only f32 is divided: 16-bit gradients are their weighted mean already.
void GradientAccumulator::finish_slots() {
  const DefaultFloats floats;
  const bool divides = state_.alone && settings_.weighted();
  const double divisor = divides ? static_cast<double>(static_cast<float>(state_.contribution_weight())) : 1;
  const bool looks = looks_again_ && scans();
  for (const int64_t index : plan_.order()) {
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    const void *source = place.at(0);
    const int64_t count = plan_.bucket(index).flat.count();
    const std::span<uint8_t> rows = rows_.of(index);
    if (settings_.leaves_unfilled) std::copy_n(holder(plan_.bucket(index).params.front()).rows.begin(), rows.size(), rows.begin());
    if (divisor > 0 && divisor != 1 && place.dtype == DType::f32) {
      finite_ = group_->reducer()->reduce({place.at(0), &source, 1, count, place.dtype, ReduceOp::sum, divisor}) && finite_;
    } else if (looks) {
      finite_ = finite_ && kernels_.all_within(source, place.dtype, count, scan_limit(place.dtype));
    }
  }
}

int64_t GradientAccumulator::unfilled_count() const {
  int64_t unfilled = 0;
  for (const int64_t index : plan_.order()) {
    for (const int64_t id : plan_.bucket(index).params) {
      unfilled += params_[id].count - tensors_[static_cast<size_t>(params_.holder(id))].filled.count();
    }
  }
  return unfilled;
}

void GradientAccumulator::begin_micro_step() {
  for (Tensor &each : tensors_) {
    each.ready.clear();
    each.acquired = false;
  }
  for (Bucket &each : buckets_) each.acquired = 0;
}

void GradientAccumulator::end_sums() {
  for (Tensor &each : tensors_) {
    each.written.clear();
    unmark_rows(each);
  }
}

void GradientAccumulator::begin_step() {
  end_sums();
  for (Tensor &each : tensors_) {
    each.filled.clear();
    each.gave_rows = false;
  }
  looks_again_ = false;
  finite_ = true;
}

}  // namespace zero
