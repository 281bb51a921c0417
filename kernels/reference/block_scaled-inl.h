/// @file One element of a slot of 8-bit floats: block_scaled.h states format and rounding.
#pragma once

#include "kernels/block_scaled.h"
#include "kernels/reference/float_bits.h"

#include <algorithm>

namespace zero::kernels::reference {

inline constexpr int kCut = 20;  ///< mantissa bits of fp32 that the formats do not have

/// The contribution of an element to the absmax of its line.
ZERO_ELEMENT float finite_magnitude(float value) { return std::isfinite(value) ? std::fabs(value) : 0; }

/// The scale of a line.
ZERO_ELEMENT float scale_of(float absmax, const Format8 &format) { return absmax == 0 ? 0 : std::max(absmax / format.largest, 0x1p-126F); }
ZERO_ELEMENT float inverse_of(float scale) { return scale == 0 ? 0 : 1 / scale; }

/// `value` in [0, largest].
ZERO_ELEMENT uint32_t round8(float value, const Format8 &format, const uint32_t *random) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t lowest_normal = (128 - format.bias) << 23;
  if (bits >= lowest_normal) {
    const uint32_t added = random != nullptr ? *random >> (32 - kCut) : (1U << (kCut - 1)) - 1 + ((bits >> kCut) & 1);
    return ((bits + added) >> kCut) - ((127 - format.bias) << 3);
  }
  if (random == nullptr) {
    // The unit of the sum is that of the code, so the addition rounds correctly.
    const uint32_t shift = (127 + 23 - format.bias - 2) << 23;
    return std::bit_cast<uint32_t>(value + std::bit_cast<float>(shift)) - shift;
  }
  const float units = value * std::bit_cast<float>((127 + format.bias + 2) << 23);
  const float whole = std::trunc(units);
  const bool up = static_cast<float>(*random >> 8) * 0x1p-24F < units - whole;
  return static_cast<uint32_t>(whole) + (up ? 1 : 0);
}

ZERO_ELEMENT uint8_t encoded(float value, float inverse, const Format8 &format, const uint32_t *random) {
  if (!std::isfinite(value) || (!format.has_sign && value < 0)) return static_cast<uint8_t>(format.nan);
  const uint32_t code = round8(std::min(std::fabs(value) * inverse, format.largest), format, random);
  if (format.has_sign) return static_cast<uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
  return static_cast<uint8_t>(value > 0 ? std::max(code, 1U) : code);
}

/// The value of a code without its scale.
ZERO_ELEMENT float code_value(uint8_t code, const Format8 &format) {
  const uint32_t magnitude = format.has_sign ? code & 0x7f : code;
  if (magnitude == format.nan) return std::bit_cast<float>(kCanonicalNan32);
  const float value = magnitude >= 8 ? std::bit_cast<float>((magnitude << kCut) + ((127 - format.bias) << 23))
                                     : static_cast<float>(magnitude) * std::bit_cast<float>((127 - format.bias - 2) << 23);
  return magnitude != code ? -value : value;
}

ZERO_ELEMENT float decoded(uint8_t code, float scale, const Format8 &format) { return canonical(code_value(code, format) * scale); }

}  // namespace zero::kernels::reference
