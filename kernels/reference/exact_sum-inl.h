/// @file Exact sum: how a double is added to the accumulator of exact_sum.h, and how the
/// accumulator is rounded to a double.
#pragma once

#include "kernels/exact_sum.h"
#include "kernels/reference/element.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace zero::kernels::reference {

/// A finite double that is not negative is sum digit[i] * 2^(32 * (limb + i) - 1074), its digits
/// below 2^32.
struct Digits {
  int limb;
  uint32_t digit[3];
  bool is_nan, is_infinite;  ///< then it has no digits
};

inline constexpr int kMantissaBits = 52;
inline constexpr int kDigitBits = 32;
/// The weight of bit 0 of limb 0 is 2^kLowestExponent, that of the smallest subnormal.
inline constexpr int kLowestExponent = -1074;

/// A mantissa of 53 bits shifted by at most 31 covers three digits.
ZERO_ELEMENT Digits digits_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int>((bits >> kMantissaBits) & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << kMantissaBits) - 1);
  if (exponent == 0x7ff) return {0, {}, mantissa != 0, mantissa == 0};
  if (exponent != 0) mantissa |= uint64_t{1} << kMantissaBits;
  const int position = exponent == 0 ? 0 : exponent - 1;
  const int shift = position % 32;
  return {position / 32,
          {static_cast<uint32_t>(mantissa << shift), static_cast<uint32_t>(mantissa >> (32 - shift)),
           static_cast<uint32_t>((mantissa >> 32) >> (32 - shift))},
          false,
          false};
}

/// Brings every limb below 2^32.
ZERO_ELEMENT void propagate(int64_t *limbs) {
  constexpr int64_t kDigitMask = (int64_t{1} << kDigitBits) - 1;
  int64_t carry = 0;
  for (int i = 0; i < ExactSum::kLimbs; ++i) {
    const int64_t limb = limbs[i] + carry;
    carry = limb >> kDigitBits;
    limbs[i] = limb & kDigitMask;
  }
}

/// 64 bits of the accumulator from bit `position` upwards; bits below bit 0 are zero. Limbs must be
/// normalised.
ZERO_ELEMENT uint64_t window(const int64_t *limbs, int position) {
  uint64_t bits = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const int at = position + bit;
    if (at < 0 || at >= ExactSum::kLimbs * kDigitBits) continue;
    bits |= ((static_cast<uint64_t>(limbs[at / kDigitBits]) >> (at % kDigitBits)) & 1) << bit;
  }
  return bits;
}

ZERO_ELEMENT bool any_below(const int64_t *limbs, int position) {
  if (position <= 0) return false;
  const int whole = position / kDigitBits;
  for (int i = 0; i < whole; ++i) {
    if (limbs[i] != 0) return true;
  }
  return (limbs[whole] & ((int64_t{1} << (position % kDigitBits)) - 1)) != 0;
}

/// The highest bit that is set, or -1 if there is none.
ZERO_ELEMENT int highest_bit(const int64_t *limbs) {
  for (int top = ExactSum::kLimbs - 1; top >= 0; --top) {
    if (limbs[top] == 0) continue;
    int bit = kDigitBits - 1;
    while (((limbs[top] >> bit) & 1) == 0) --bit;
    return top * kDigitBits + bit;
  }
  return -1;
}

/// Returns the value of exported limbs, or of sums of them, rounded to the nearest double, ties to
/// even. Normalises the limbs.
ZERO_ELEMENT double total_of(int64_t *limbs) {
  if (limbs[ExactSum::kLimbs] > 0) return std::bit_cast<double>(uint64_t{0x7ff8} << 48);
  if (limbs[ExactSum::kLimbs + 1] > 0) return std::bit_cast<double>(uint64_t{0x7ff0} << 48);
  propagate(limbs);
  const int highest = highest_bit(limbs);
  if (highest <= kMantissaBits) return std::ldexp(static_cast<double>(window(limbs, 0)), kLowestExponent);
  const int lowest = highest - kMantissaBits;
  uint64_t mantissa = window(limbs, lowest) & ((uint64_t{2} << kMantissaBits) - 1);
  const bool half = (window(limbs, lowest - 1) & 1) != 0;
  const bool more = any_below(limbs, lowest - 1);
  if (half && (more || (mantissa & 1) != 0)) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), lowest + kLowestExponent);
}

}  // namespace zero::kernels::reference
