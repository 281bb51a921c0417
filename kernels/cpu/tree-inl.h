/// @file The fixed tree over a few sources in registers, and the division of its sum. reduce.h
/// states the arithmetic.
#pragma once

#include "kernels/cpu/format-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// The largest power of two below `count`, at which the tree splits.
HWY_INLINE constexpr int64_t tree_cut(int64_t count) {
  int64_t cut = 1;
  while (2 * cut < count) cut *= 2;
  return cut;
}

/// Sources that are multiplied before they are added.
struct WeightedSources {
  const void *const *address;
  const float *weight;
  HWY_INLINE WeightedSources operator+(int64_t count) const { return {address + count, weight + count}; }
};

/// Elements [index, index + lanes) of the first source.
template <class Format>
HWY_INLINE typename Format::V leaf(const void *const *sources, int64_t index) {
  return Format::load(sources[0], index);
}
template <class Format>
HWY_INLINE typename Format::V leaf(WeightedSources sources, int64_t index) {
  return hn::Mul(Format::load(sources.address[0], index), hn::Set(typename Format::D(), sources.weight[0]));
}

HWY_INLINE const void *first_of(const void *const *sources) { return sources[0]; }
HWY_INLINE const void *first_of(WeightedSources sources) { return sources.address[0]; }

/// T(0, kCount) of elements [index, index + lanes).
template <int64_t kCount, class Format, class Op, class Sources>
HWY_INLINE typename Format::V tree(Sources sources, int64_t index) {
  if constexpr (kCount == 1) {
    return leaf<Format>(sources, index);
  } else {
    constexpr int64_t kCut = tree_cut(kCount);
    return Op::apply(typename Format::D(), tree<kCut, Format, Op>(sources, index), tree<kCount - kCut, Format, Op>(sources + kCut, index));
  }
}

/// Divides by one number. For a power of two it multiplies by the inverse, which gives the same
/// bits several times as fast.
template <class Format>
class Divider {
  using D = typename Format::D;
  using V = typename Format::V;
  using Value = typename Format::Value;

 public:
  HWY_INLINE explicit Divider(double divisor)
      : divides_(!is_power_of_two(divisor)),
        divisor_(hn::Set(D(), static_cast<Value>(divisor))),
        factor_(hn::Set(D(), static_cast<Value>(divides_ ? 1 : 1 / divisor))) {}

  HWY_INLINE V divide(V value) const { return divides_ ? hn::Div(value, divisor_) : hn::Mul(value, factor_); }

 private:
  static HWY_INLINE bool is_power_of_two(double divisor) {
    int exponent = 0;
    return __builtin_frexp(divisor, &exponent) == 0.5 && exponent > -100 && exponent < 100;
  }

  bool divides_;
  V divisor_;
  V factor_;
};

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
