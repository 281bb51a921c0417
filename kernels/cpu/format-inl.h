/// @file Element formats and operations of the SIMD reduction: how a format is loaded into, and
/// rounded from, the vectors that it is added in. reduce.h states the arithmetic.
#pragma once

#include "kernels/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// put() rounds to the stored type, stores, and returns the stored value. kept() returns that value
/// without storing it.
template <typename T>
struct Native {
  using Element = T;
  using Stored = T;
  using Value = T;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const void *source, int64_t index) { return hn::LoadU(D(), static_cast<const T *>(source) + index); }
  static HWY_INLINE V put(V value, void *out, int64_t index, bool streams) {
    store(value, D(), static_cast<T *>(out) + index, streams);
    return value;
  }
  static HWY_INLINE V kept(V value) { return value; }
};

using F32 = Native<float>;
using F64 = Native<double>;

struct F16 {
  using Element = hwy::float16_t;
  using Stored = uint16_t;
  using Value = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Narrow = hn::Rebind<hwy::float16_t, D>;
  using Bits16 = hn::Rebind<uint16_t, D>;
  static HWY_INLINE hn::Vec<Bits16> rounded(V value) { return hn::BitCast(Bits16(), hn::DemoteTo(Narrow(), value)); }
  static HWY_INLINE V load(const void *source, int64_t index) {
    return hn::PromoteTo(D(), hn::LoadU(Narrow(), static_cast<const hwy::float16_t *>(source) + index));
  }
  static HWY_INLINE V put(V value, void *out, int64_t index, bool streams) {
    const auto narrow = hn::DemoteTo(Narrow(), value);
    store(hn::BitCast(Bits16(), narrow), Bits16(), static_cast<uint16_t *>(out) + index, streams);
    return hn::PromoteTo(D(), narrow);
  }
  static HWY_INLINE V kept(V value) { return hn::PromoteTo(D(), hn::DemoteTo(Narrow(), value)); }
};

/// Rounds with integers: Highway's own conversion truncates on some targets.
struct Bf16 {
  using Element = uint16_t;
  using Stored = uint16_t;
  using Value = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Bits = hn::RebindToUnsigned<D>;
  using Bits16 = hn::Rebind<uint16_t, D>;
  static HWY_INLINE V load(const void *source, int64_t index) {
    const auto bits = hn::PromoteTo(Bits(), hn::LoadU(Bits16(), static_cast<const uint16_t *>(source) + index));
    return hn::BitCast(D(), hn::ShiftLeft<16>(bits));
  }
  static HWY_INLINE hn::Vec<Bits16> rounded(V value) { return upper_halves(to_nearest(value)); }
  /// random.h states the rule. `random` holds the numbers of two elements per word, as
  /// narrow_stochastic takes them; `value` begins at element `index`. SIMD targets are
  /// little-endian.
  static HWY_INLINE hn::Vec<Bits16> rounded_stochastic(V value, const uint32_t *random, int64_t index) {
    const auto bits = hn::BitCast(Bits(), value);
    const auto finite = hn::Lt(hn::And(bits, hn::Set(Bits(), 0x7fffffff)), hn::Set(Bits(), 0x7f800000));
    const auto added =
        hn::IfThenElseZero(finite, hn::PromoteTo(Bits(), hn::LoadU(Bits16(), reinterpret_cast<const uint16_t *>(random) + index)));
    return upper_halves(hn::Add(bits, added));
  }
  static HWY_INLINE V put(V value, void *out, int64_t index, bool streams) {
    const auto bits = to_nearest(value);
    store(upper_halves(bits), Bits16(), static_cast<uint16_t *>(out) + index, streams);
    return cut(bits);
  }
  static HWY_INLINE V kept(V value) { return cut(to_nearest(value)); }

 private:
  /// The result is the upper half of each lane.
  static HWY_INLINE hn::Vec<Bits> to_nearest(V value) {
    const auto bits = hn::BitCast(Bits(), value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Bits(), 1));
    return hn::Add(hn::Add(bits, hn::Set(Bits(), 0x7fff)), odd);
  }
  static HWY_INLINE V cut(hn::Vec<Bits> bits) { return hn::BitCast(D(), hn::And(bits, hn::Set(Bits(), 0xffff0000))); }
  static HWY_INLINE hn::Vec<Bits16> upper_halves(hn::Vec<Bits> bits) {
    const hn::Repartition<uint16_t, D> halves;
    const auto both = hn::BitCast(halves, bits);
    return hn::LowerHalf(Bits16(), hn::ConcatOdd(halves, both, both));
  }
};

/// Loaded as another format, stored as fp32.
template <class Source>
struct Widened : Source {
  using Stored = float;
  static HWY_INLINE typename Source::V put(typename Source::V value, void *out, int64_t index, bool streams) {
    return F32::put(value, out, index, streams);
  }
};

/// Loaded as fp32, rounded to another format.
template <class Target>
struct Narrowed : F32 {
  using Stored = typename Target::Stored;
  static HWY_INLINE V put(V value, void *out, int64_t index, bool streams) { return Target::put(value, out, index, streams); }
};

struct Sum {
  static constexpr bool kDivides = true;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Mul(a, b);
  }
};

/// `chosen` where a and b differ, `tie` where they are equal (the same bits, or zeros), NaN where
/// one is NaN.
template <class V>
HWY_INLINE V choose(V a, V b, V chosen, V tie) {
  const V ordered = hn::IfThenElse(hn::Eq(a, b), tie, chosen);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, ordered));
}

struct Min {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return choose(a, b, hn::IfThenElse(hn::Lt(a, b), a, b), hn::Or(a, b));
  }
};

struct Max {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return choose(a, b, hn::IfThenElse(hn::Lt(a, b), b, a), hn::And(a, b));
  }
};

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
