/// @file Float formats in integer code: the one NaN that results carry, and conversions rounded to
/// nearest even.
#pragma once

#include "core/dtype.h"
#include "kernels/reference/element.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace zero::kernels::reference {

inline constexpr uint32_t kCanonicalNan32 = 0x7fc00000;
inline constexpr uint64_t kCanonicalNan64 = 0x7ff8000000000000;

ZERO_ELEMENT float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(kCanonicalNan32) : value; }
ZERO_ELEMENT double canonical(double value) { return std::isnan(value) ? std::bit_cast<double>(kCanonicalNan64) : value; }

/// Converts to fp32. A value beyond the range becomes the largest fp32.
ZERO_ELEMENT float saturated(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(value > kMost ? kMost : value);
}

ZERO_ELEMENT float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// `value` may be NaN only in its canonical form, which keeps its upper half.
ZERO_ELEMENT uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

ZERO_ELEMENT float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

/// `value` may be NaN only in its canonical form.
ZERO_ELEMENT uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude >= 0x38800000) {                      // normal: from 2^-14
    const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((rounded >> 13) - (112 << 10)));
  }
  // Subnormal: the unit of the sum below is 2^-24, so the addition rounds correctly.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
}

/// Element `index` of f32, f16 or bf16 values, in fp32. NaN may have any form.
ZERO_ELEMENT float element(const void *values, DType dtype, int64_t index) {
  if (dtype == DType::f32) return static_cast<const float *>(values)[index];
  const uint16_t bits = static_cast<const uint16_t *>(values)[index];
  return dtype == DType::f16 ? from_f16(bits) : from_bf16(bits);
}

/// Adds `random`, of 16 bits, to the bits that are cut, then truncates.
ZERO_ELEMENT uint16_t to_bf16_stochastic(float value, uint32_t random) {
  if (!std::isfinite(value)) return to_bf16(value);
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + random) >> 16);
}

ZERO_ELEMENT uint16_t to_f16_stochastic(float value, uint32_t random) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x47800000) return to_f16(value);  // 2^16 and above
  if (magnitude >= 0x38800000) return static_cast<uint16_t>(sign | (((magnitude + (random >> 19)) >> 13) - (112 << 10)));
  const float units = std::bit_cast<float>(magnitude) * 0x1p24F;
  const auto whole = static_cast<uint32_t>(units);
  const bool up = static_cast<float>(random >> 8) * 0x1p-24F < units - static_cast<float>(whole);
  return static_cast<uint16_t>(sign | (whole + (up ? 1 : 0)));
}

}  // namespace zero::kernels::reference
