/// @file The caller's side of a step's gradients: acquire, ready, and what becomes of values that are given.
#include "engine/gradients/gradients.h"

#include "core/default_floats.h"
#include "core/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace zero {

Status Gradients::open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, bool alone, const MemorySource &source,
                       std::vector<bool> counted) {
  group_ = std::move(group);
  source_ = source;
  alone_ = alone;
  tensors_.resize(plan_.params().size());
  buckets_.resize(plan_.buckets().size());
  for (int64_t id = 0; id < params_.size(); ++id) {
    holder(id).names.push_back(id);
    if (by_rows(id) && params_[id].count > 0) holder(id).rows.resize(static_cast<size_t>(params_[id].shape[0]) + 1);
  }
  std::vector<int64_t> sizes;
  for (const int64_t index : plan_.order()) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    bucket.dtype = slots_.place(slots_.grad(), index).dtype;
    sizes.push_back(nbytes_of(index));
  }
  if (pooled()) ZERO_TRY(pool_.open(source, sizes, plan_.held_bucket_count(), settings_.buckets.pool_limit));
  squares_tell_ = settings_.grad_norm && std::find(counted.begin(), counted.end(), false) == counted.end();
  ZERO_TRY(reductions_.open(group_, std::move(across), source, std::move(counted)));
  reset();
  return {};
}

void Gradients::close() {
  reductions_.stop();
  if (group_ != nullptr && pool_.mapping() != nullptr) group_->transport().unshare(*pool_.mapping());
  group_.reset();
  pool_.release();
  local_.release();
  brought_.release();
  tensors_.clear();
  buckets_.clear();
}

std::byte *Gradients::within(std::byte *bucket, int64_t id, int64_t offset, DType dtype) const {
  const PlannedParam &param = plan_.param(id);
  return bucket + (param.flat.begin - plan_.bucket(param.bucket).flat.begin + offset) * dtype_nbytes(dtype);
}

Status Gradients::check_acquire(int64_t id) {
  const Tensor &tensor = tensors_[static_cast<size_t>(id)];
  ZERO_CHECK(tensor.ready.count() < params_[id].count, ZERO_E_STATE, "the gradient of %s is ready already; the step comes next",
             params_[id].name.c_str());
  ZERO_TRY(check_not_filled_elsewhere(id));
  const bool adds = holder(id).written.count() > 0 && !lands(home(id));
  ZERO_CHECK(!adds || !weighted() || tensor.acquired, ZERO_E_UNSUPPORTED,
             "gradients are weighted, and elements of %s were given before, from memory of the caller%s: they cannot be added to in place; "
             "give the rest from memory of your own",
             params_[id].name.c_str(), holder(id).names.size() > 1 ? " or under a name that is tied to it" : "");
  return {};
}

/// What the caller fills under another name of a tied tensor is the same memory.
Status Gradients::check_not_filled_elsewhere(int64_t id) const {
  for (const int64_t name : tensors_[static_cast<size_t>(params_.holder(id))].names) {
    ZERO_CHECK(name == id || !tensors_[static_cast<size_t>(name)].acquired, ZERO_E_STATE,
               "the gradient of %s is acquired under the name %s, which is tied to it; give that to zero_optimizer_grad_ready first",
               params_[id].name.c_str(), params_[name].name.c_str());
  }
  return {};
}

/// What was given so far becomes the whole tensor's sum, so that the caller can add to all of it.
void Gradients::offer_sum(int64_t id) {
  clear_unwritten(params_.holder(id));
  Tensor &shared = holder(id);
  shared.written.clear();
  shared.written.add({0, params_[id].count});
  scans_late_ = true;
}

Status Gradients::acquire(int64_t id, void **out_data, int64_t *out_accumulate) {
  if (params_[id].count == 0) {
    *out_data = nullptr;
    *out_accumulate = 0;
    return {};
  }
  ZERO_TRY(check_acquire(id));
  Bucket &bucket = home(id);
  ZERO_TRY(need_buffer(bucket, plan_.param(id).bucket));
  Tensor &tensor = tensors_[static_cast<size_t>(id)];
  const bool adds = !lands(bucket) && holder(id).written.count() > 0;
  if (adds && !tensor.acquired) offer_sum(id);
  *out_data = within(bucket.data, id, 0, bucket.dtype);
  *out_accumulate = tensor.acquired || adds ? 1 : 0;
  if (!tensor.acquired) {
    ++acquired_count_;
    ++bucket.acquired;
  }
  tensor.acquired = true;
  return {};
}

Status Gradients::ready(int64_t id, const void *grad, int64_t offset, int64_t count, Device *device, void *stream) {
  if (count == 0) return {};
  Tensor &tensor = tensors_[static_cast<size_t>(id)];
  const int64_t index = plan_.param(id).bucket;
  const Range range{offset, offset + count};
  ZERO_CHECK(!tensor.ready.overlaps(range), ZERO_E_STATE,
             "the gradient of %s has elements in %lld .. %lld that are ready already in this step", params_[id].name.c_str(),
             lld(range.begin), lld(range.end - 1));
  ZERO_CHECK(grad != nullptr || tensor.acquired, ZERO_E_STATE,
             "grad is NULL, but the gradient of %s is not acquired; call zero_optimizer_grad_acquire first or give an address",
             params_[id].name.c_str());
  Bucket &bucket = home(id);
  if (grad != nullptr && !lands(bucket)) ZERO_TRY(check_not_filled_elsewhere(id));
  if (kind_ != MicroStep::local || !lands(bucket)) ZERO_TRY(need_buffer(bucket, index));
  // What was taken in must be noted: a call that fails between would be made again, and its values be added twice.
  for (ReadyRanges *ranges : {&tensor.ready, &holder(id).filled, &holder(id).written}) ranges->make_room();
  started_ = true;
  given_ = true;
  if (device != nullptr) {
    ZERO_TRY(source_.device == nullptr ? fetch(id, grad, range, *device, stream)
                                       : bring(id, static_cast<const std::byte *>(grad), range, *device, stream));
  } else {
    take_in(id, grad != nullptr ? static_cast<const std::byte *>(grad) : within(bucket.data, id, offset, bucket.dtype), range);
  }
  mark_rows(id, range);
  return end_ready(id, range);
}

/// What was taken in counts as ready.
Status Gradients::end_ready(int64_t id, Range range) {
  Tensor &tensor = tensors_[static_cast<size_t>(id)];
  const int64_t index = plan_.param(id).bucket;
  Bucket &bucket = home(id);
  tensor.ready.add(range);
  bucket.missing -= range.count();
  if (tensor.ready.count() == params_[id].count && tensor.acquired) {
    tensor.acquired = false;
    --acquired_count_;
    --bucket.acquired;
  }
  if (bucket.acquired == 0) leave_landing(bucket);
  if (bucket.missing == 0) close_bucket(index);
  submit_complete();
  return give_back_ended();
}

Status Gradients::set_weight(double weight) {
  ZERO_CHECK(weighted(), ZERO_E_STATE, "weights are only used with ZERO_KEY_DIVISOR = ZERO_DIVISOR_WEIGHTS");
  const auto rounded = static_cast<float>(weight);
  ZERO_CHECK(weight >= 0 && std::isfinite(rounded) && (weight == 0) == (rounded == 0), ZERO_E_INVALID_ARGUMENT,
             "weight is %s, but must be 0 or a positive number that fp32 has, 2^-149 to 3.4e38", number_text(weight).c_str());
  ZERO_CHECK(!given_, ZERO_E_STATE, "the weight of a step or micro-step must be set before its first zero_optimizer_grad_ready");
  weight_ = weight;
  weight_set_ = true;
  return {};
}

/// Part by part: while one is taken in, the next one travels.
Status Gradients::fetch(int64_t id, const void *grad, Range range, Device &device, void *stream) {
  const int64_t element = dtype_nbytes(home(id).dtype);
  const auto use = [&](const std::byte *values, int64_t begin, int64_t nbytes) {
    const int64_t first = range.begin + begin / element;
    take_in(id, values, {first, first + nbytes / element});
  };
  return device.fetch(grad, range.count() * element, stream, std::cref(use));
}

/// Part by part, through the one that stays on the device from the first of them on.
Status Gradients::bring(int64_t id, const std::byte *grad, Range range, Device &device, void *stream) {
  constexpr int64_t kPartNbytes = 2 << 20;
  const int64_t element = dtype_nbytes(home(id).dtype);
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

Gradients::Landing Gradients::landing_of(int64_t id) {
  const Bucket &bucket = home(id);
  const DType dtype = lands(bucket) ? sum_dtype(bucket) : bucket.dtype;
  const int64_t count = plan_.bucket(plan_.param(id).bucket).flat.count();
  return {lands(bucket) ? bucket.local : bucket.data, dtype, count * dtype_nbytes(dtype)};
}

/// Brings a range into this rank's contribution or local sum: elements that have something are added to, the others are begun.
void Gradients::take_in(int64_t id, const std::byte *values, Range range) {
  const DefaultFloats floats;
  Bucket &bucket = home(id);
  Tensor &shared = holder(id);
  const Landing at = landing_of(id);
  shared.filled.add_missing(range);
  const bool in_place = values == within(at.memory, id, range.begin, at.dtype) && !lands(bucket);
  if (in_place && shared.written.covers(range)) return;  // the caller added to the sum
  shared.written.for_each_part(range, [&](Range part, bool written) {
    std::byte *to = within(at.memory, id, part.begin, at.dtype);
    const std::byte *from = values + (part.begin - range.begin) * dtype_nbytes(bucket.dtype);
    const auto take = written ? &Gradients::add : &Gradients::take_first;
    (this->*take)({bucket, to, at.dtype, from, bucket.dtype, part.count(), at.total_nbytes});
  });
  shared.written.add_missing(range);
}

/// A rank without weight has nothing to contribute; its values are not read. What a device is to look at where it is waits for the whole
/// bucket: a launch for every tensor takes longer than the look.
void Gradients::take_first(const Arrival &given) {
  const auto &[bucket, to, to_dtype, values, dtype, count, total_nbytes] = given;
  if (weight_ == 0) {
    kernels_.clear(to, count * dtype_nbytes(to_dtype));
    return;
  }
  const bool converts = to_dtype != dtype;
  if (converts) kernels_.convert(to, to_dtype, values, dtype, count, total_nbytes);
  const std::byte *from = converts ? to : values;
  if (const float factor = arrival_factor(to_dtype); factor != 1) {
    kernels_.scale(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), count, factor);
    return;
  }
  const bool looks = scans() && finite_ && !accumulating_;
  if (looks && from == to && source_.device != nullptr) {
    bucket.unseen = true;
  } else if (looks) {
    const float limit = scan_limit(to_dtype);
    finite_ =
        from == to ? kernels_.all_within(to, to_dtype, count, limit) : kernels_.copy_within(to, from, to_dtype, count, limit, total_nbytes);
  } else if (from != to) {
    kernels_.copy(to, from, to_dtype, count, total_nbytes);
  }
}

void Gradients::add(const Arrival &given) {
  scans_late_ = true;
  if (weight_ != 0) kernels_.add(given.to, given.to_dtype, given.values, given.dtype, given.count, arrival_factor(given.to_dtype));
}

/// N values of at most largest / 2N add up to less than the largest number of the slot's dtype, whatever rounding does.
float Gradients::scan_limit(DType dtype) const {
  if (alone_) return kLargestFinite;
  constexpr float kLargestHalf = 65504;
  return (dtype == DType::f16 ? kLargestHalf : kLargestFinite) / (2 * static_cast<float>(group_->size()));
}

kernels::ExactSum Gradients::squares() {
  kernels::ExactSum sum = reductions_.squares();
  if (alone_) add_squares(sum);
  kernels_.finish_squares(sum);
  return sum;
}

void Gradients::add_squares(kernels::ExactSum &sum) const {
  for (const int64_t index : plan_.order()) {
    if (!reductions_.counts(index)) continue;
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    kernels_.add_squares(place.at(0), place.dtype, plan_.bucket(index).flat.count(), sum);
  }
}

}  // namespace zero
