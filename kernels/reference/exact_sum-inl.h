/// @file How a double enters the accumulator of exact_sum.h.
#pragma once

#include "kernels/reference/element.h"

#include <bit>
#include <cstdint>

namespace zero::kernels::reference {

/// A finite double that is not negative is sum digit[i] * 2^(32 * (limb + i) - 1074), its digits below 2^32.
struct Digits {
  int limb;
  uint32_t digit[3];
  bool is_nan, is_infinite;  ///< then it has no digits
};

/// A mantissa of 53 bits shifted by at most 31 covers three digits.
ZERO_ELEMENT Digits digits_of(double value) {
  constexpr int kMantissaBits = 52;
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

}  // namespace zero::kernels::reference
