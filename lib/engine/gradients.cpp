/// @file The caller's side of a step's gradients: acquire, ready, and what becomes of values that are given.
#include "engine/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zero {

Status Gradients::open(std::shared_ptr<Group> group, const MemorySource &source) {
  group_ = std::move(group);
  alone_ = group_->size() == 1;
  tensors_.resize(plan_.params().size());
  buckets_.resize(plan_.buckets().size());
  if (pooled()) {
    constexpr int64_t kFirstBuffers = 2;  // one is filled while the other is reduced
    const int64_t nbytes = plan_.largest_bucket() * static_cast<int64_t>(sizeof(float));
    ZERO_TRY(pool_.open(source, nbytes, std::min(kFirstBuffers, plan_.bucket_count()), settings_.pool_limit));
  }
  reductions_.open(group_);
  reset();
  return {};
}

void Gradients::close() {
  reductions_.stop();
  if (group_ != nullptr && pool_.mapping() != nullptr) group_->transport().unshare(*pool_.mapping());
  pool_.release();
}

void Gradients::reset() {
  reductions_.clear();
  for (Tensor &tensor : tensors_) {
    tensor.ready.clear();
    tensor.acquired = false;
  }
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const PlannedBucket &planned = plan_.buckets()[i];
    buckets_[i].data = pooled() ? nullptr : slots_.at(slots_.grad(), planned, 0);
    buckets_[i].missing = planned.element_count;
  }
  next_submitted_ = 0;
  acquired_count_ = 0;
  unfilled_count_ = 0;
  weight_ = 1;
  started_ = false;
  weight_sent_ = false;
  finite_ = true;
}

float *Gradients::place(int64_t id, int64_t offset) {
  const PlannedParam &param = plan_.param(id);
  const int64_t index = param.flat.begin - plan_.bucket(param.bucket).flat.begin + offset;
  return reinterpret_cast<float *>(buckets_[static_cast<size_t>(param.bucket)].data) + index;
}

Status Gradients::acquire(int64_t id, void **out_data, int64_t *out_accumulate) {
  Tensor &tensor = tensors_[static_cast<size_t>(id)];
  const PlannedParam &param = plan_.param(id);
  const int64_t count = param.flat.count();
  if (count == 0) {
    *out_data = nullptr;
    *out_accumulate = 0;
    return {};
  }
  ZERO_CHECK(tensor.ready.count() < count, ZERO_E_STATE, "the gradient of parameter %lld is ready already; the step comes next",
             static_cast<long long>(id));
  ZERO_TRY(need_buffer(buckets_[static_cast<size_t>(param.bucket)], param.bucket));
  *out_data = place(id, 0);
  *out_accumulate = tensor.acquired ? 1 : 0;
  if (!tensor.acquired) ++acquired_count_;
  tensor.acquired = true;
  return {};
}

Status Gradients::ready(int64_t id, const char *name, const void *grad, int64_t offset, int64_t count) {
  if (count == 0) return {};
  Tensor &tensor = tensors_[static_cast<size_t>(id)];
  const PlannedParam &param = plan_.param(id);
  const Range range{offset, offset + count};
  ZERO_CHECK(!tensor.ready.overlaps(range), ZERO_E_STATE,
             "the gradient of %s has elements in %lld .. %lld that are ready already in this step", name,
             static_cast<long long>(range.begin), static_cast<long long>(range.end - 1));
  ZERO_CHECK(grad != nullptr || tensor.acquired, ZERO_E_STATE,
             "grad is NULL, but the gradient of %s is not acquired; call zero_optimizer_grad_acquire first or give an address", name);
  Bucket &bucket = buckets_[static_cast<size_t>(param.bucket)];
  ZERO_TRY(need_buffer(bucket, param.bucket));
  started_ = true;
  float *const to = place(id, offset);
  take_in(to, grad != nullptr ? static_cast<const float *>(grad) : to, count);
  tensor.ready.add(range);
  bucket.missing -= count;
  if (tensor.ready.count() == param.flat.count() && tensor.acquired) {
    tensor.acquired = false;
    --acquired_count_;
  }
  if (bucket.missing == 0 && !alone_ && plan_.order()[next_submitted_] != param.bucket) {
    stalled_nbytes_.fetch_add(plan_.bucket(param.bucket).flat.count() * static_cast<int64_t>(sizeof(float)), std::memory_order_relaxed);
  }
  submit_complete();
  return give_back_ended();
}

Status Gradients::set_weight(double weight) {
  ZERO_CHECK(weighted(), ZERO_E_STATE, "weights are only used with ZERO_KEY_DIVISOR = ZERO_DIVISOR_WEIGHTS");
  const auto rounded = static_cast<float>(weight);
  ZERO_CHECK(weight >= 0 && std::isfinite(rounded) && (weight == 0) == (rounded == 0), ZERO_E_INVALID_ARGUMENT,
             "weight is %.17g, but must be 0 or a positive number within fp32", weight);
  ZERO_CHECK(!started_, ZERO_E_STATE, "the weight of a step must be set before its first zero_optimizer_grad_ready");
  weight_ = weight;
  return {};
}

/// Brings values into the bucket as this rank's contribution. In a world of one they are looked at here, because no reduction does.
void Gradients::take_in(float *place, const float *values, int64_t count) {
  if (static_cast<float>(weight_) != 1.0F) {
    take_in_weighted(place, values, count);
    return;
  }
  const bool scans = alone_ && settings_.skips_nonfinite;
  if (scans && finite_) {
    finite_ = values == place ? kernels_.all_finite(place, count) : kernels_.copy_finite(place, values, count);
  } else if (values != place) {
    kernels_.copy(place, values, count);
  }
}

void Gradients::take_in_weighted(float *place, const float *values, int64_t count) {
  if (weight_ == 0) {
    std::memset(place, 0, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const auto weight = static_cast<float>(weight_);
  kernels_.scale(place, values, count, weight);
  if (!alone_) return;
  const void *source = place;
  if (!group_->reducer()->reduce({place, &source, 1, count, DType::f32, ReduceOp::sum, weight})) finite_ = false;
}

kernels::ExactSum Gradients::squares() const {
  if (!alone_) return reductions_.squares();
  kernels::ExactSum sum;
  if (plan_.extent() > 0) kernels_.add_squares(reinterpret_cast<const float *>(slots_.grad().data), plan_.extent(), sum);
  return sum;
}

}  // namespace zero
