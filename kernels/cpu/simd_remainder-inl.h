/// @file Remainders, SIMD: fp32 from a bf16 and the 16 bits that it lacks, and the reverse.
/// reference/remainder-inl.h states the rule.
#pragma once

#include "kernels/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// Joins one vector of fp32 from the halves at both addresses.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> load_joined(const uint16_t *upper, const uint16_t *lower) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::RebindToSigned<decltype(d)> numbers;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const hn::Rebind<int16_t, decltype(d)> signed_half;
  const auto high = hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, upper)));
  const auto low = hn::PromoteTo(numbers, hn::BitCast(signed_half, hn::LoadU(half, lower)));
  return hn::BitCast(d, hn::Add(high, hn::BitCast(bits, low)));
}

/// `value` holds NaN in its one form only.
HWY_INLINE void store_split(hn::Vec<hn::ScalableTag<float>> value, uint16_t *upper, uint16_t *lower) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const auto number = hn::BitCast(bits, value);
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(hn::Add(number, hn::Set(bits, 0x8000)))), half, upper);
  hn::StoreU(hn::TruncateTo(half, number), half, lower);
}

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
