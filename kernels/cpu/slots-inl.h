/// @file What the SIMD kernels of all algorithms do with slots: the gradient in, the parameter out, and what lies ahead.
#pragma once

#include "kernels/cpu/format-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// What lies as far ahead as element i of this loop.
HWY_INLINE void prefetch_ahead(const Slots &slots, int64_t i) {
  const Ahead *ahead = slots.ahead;
  if (ahead == nullptr) return;
  for (int k = 0; k < ahead->count; ++k) __builtin_prefetch(ahead->arrays[k].data + (ahead->begin + i) * ahead->arrays[k].element_nbytes);
}

template <class T>
HWY_INLINE T constants_in(const Constants &constants) {
  T result;
  __builtin_memcpy(&result, constants.bytes, sizeof result);
  return result;
}

/// The slots whose form is not fp32 throughout. Format: of the gradient and of Slots::rounded.
template <class Format>
class Ends {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Element = typename Format::Element;
  static constexpr bool kRounds = sizeof(Element) < sizeof(float);

 public:
  HWY_INLINE explicit Ends(const Slots &slots)
      : grad_(static_cast<const Element *>(slots.grad)),
        factor_(hn::Set(D(), slots.grad_factor)),
        param_(slots.param),
        rounded_(static_cast<uint16_t *>(slots.rounded)),
        streams_(slots.streams && reinterpret_cast<uintptr_t>(slots.rounded) % (hn::Lanes(D()) * sizeof(uint16_t)) == 0) {}

  HWY_INLINE void prefetch_gradient(int64_t i) const { prefetch(grad_ + i); }

  /// As the algorithm sees it.
  HWY_INLINE V gradient(int64_t i) const { return hn::Mul(Format::load(grad_, i), factor_); }

  HWY_INLINE void store_param(V value, int64_t i) const { hn::StoreU(canonical(D(), value), D(), param_ + i); }

  /// Rounds the line of parameters that was stored at i.
  HWY_INLINE void round(int64_t i) const {
    if constexpr (kRounds) {
      if (rounded_ == nullptr) return;
      const typename Format::Bits16 d;
      for (int64_t end = i + kStep<float>; i < end; i += static_cast<int64_t>(hn::Lanes(D()))) {
        const auto rounded = Format::rounded(hn::LoadU(D(), param_ + i));
        store(rounded, d, rounded_ + i, streams_);
      }
    }
  }

 private:
  const Element *grad_;
  V factor_;
  float *param_;
  uint16_t *rounded_;
  bool streams_;
};

/// work(format of the slots' ends).
template <class Work>
HWY_INLINE void with_format(const Slots &slots, const Work &work) {
  switch (slots.grad_dtype) {
    case DType::f16:
      return work(F16());
    case DType::bf16:
      return work(Bf16());
    default:
      return work(F32());
  }
}

/// update(i) for all vectors of whole lines, with what lies ahead asked for. Parameters are rounded some lines after they were stored: what
/// waits for divisions would fill the processor's queues otherwise.
template <class Format, class Update>
HWY_INLINE void update_lines(const Slots &slots, const Ends<Format> &ends, int state_count, const Update &update) {
  constexpr int64_t kBehind = 8 * kStep<float>;
  const int64_t whole = whole_steps<float>(slots.count);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(slots.param + i);
    ends.prefetch_gradient(i);
    prefetch_ahead(slots, i);
    for (int state = 0; state < state_count; ++state) prefetch(slots.state[state] + i);
    if (i >= kBehind) ends.round(i - kBehind);
    for (int64_t lane = 0; lane < kStep<float>; lane += static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()))) update(i + lane);
  }
  for (int64_t i = whole > kBehind ? whole - kBehind : 0; i < whole; i += kStep<float>) ends.round(i);
}

/// What loops over whole lines leave over. Slots that are not kept are nullptr.
HWY_INLINE Slots rest_of_lines(const Slots &slots, int state_count) {
  const int64_t begin = whole_steps<float>(slots.count);
  const int64_t element_nbytes = slots.grad_dtype == DType::f32 ? 4 : 2;
  Slots result = slots;
  if (result.param != nullptr) result.param += begin;
  if (result.grad != nullptr) result.grad = static_cast<const char *>(result.grad) + begin * element_nbytes;
  if (result.rounded != nullptr) result.rounded = static_cast<uint16_t *>(result.rounded) + begin;
  for (int i = 0; i < state_count; ++i) result.state[i] += begin;
  result.count -= begin;
  return result;
}

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
