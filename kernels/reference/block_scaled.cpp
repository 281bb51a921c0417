/// @file Slots of 8-bit floats, plain: block_scaled.h states format and rounding. 5 bytes per element must move, with random numbers 9.
#include "kernels/block_scaled.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

#include <algorithm>

namespace zero::kernels::reference {
namespace {

constexpr int kCut = 20;  ///< mantissa bits of fp32 that the formats do not have

float scale_of(const float *values, int64_t count, float largest) {
  float absmax = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) absmax = std::max(absmax, std::fabs(values[i]));
  }
  return absmax == 0 ? 0 : std::max(absmax / largest, 0x1p-126F);
}

/// `value` in [0, largest].
uint32_t round(float value, const Format8 &format, const uint32_t *random) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t lowest_normal = (128 - format.bias) << 23;
  if (bits >= lowest_normal) {
    const uint32_t added = random != nullptr ? *random >> (32 - kCut) : (1U << (kCut - 1)) - 1 + ((bits >> kCut) & 1);
    return ((bits + added) >> kCut) - ((127 - format.bias) << 3);
  }
  const float units = value * std::bit_cast<float>((127 + format.bias + 2) << 23);
  if (random == nullptr) return static_cast<uint32_t>(std::nearbyint(units));
  const float whole = std::trunc(units);
  const bool up = static_cast<float>(*random >> 8) * 0x1p-24F < units - whole;
  return static_cast<uint32_t>(whole) + (up ? 1 : 0);
}

uint8_t encoded(float value, float inverse, const Format8 &format, const uint32_t *random) {
  if (!std::isfinite(value) || (!format.has_sign && value < 0)) return static_cast<uint8_t>(format.nan);
  const uint32_t code = round(std::min(std::fabs(value) * inverse, format.largest), format, random);
  if (format.has_sign) return static_cast<uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
  return static_cast<uint8_t>(value > 0 ? std::max(code, 1U) : code);
}

float decoded(uint8_t code, const Format8 &format) {
  const uint32_t magnitude = format.has_sign ? code & 0x7f : code;
  if (magnitude == format.nan) return std::bit_cast<float>(kCanonicalNan32);
  const float value = magnitude >= 8 ? std::bit_cast<float>((magnitude << kCut) + ((127 - format.bias) << 23))
                                     : static_cast<float>(magnitude) * std::bit_cast<float>((127 - format.bias - 2) << 23);
  return magnitude != code ? -value : value;
}

}  // namespace

void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random) {
  const Format8 format = format8(dtype);
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t end = std::min(begin + kLine, count);
    const float scale = scale_of(values + begin, end - begin, format.largest);
    const float inverse = scale == 0 ? 0 : 1 / scale;
    scales[begin / kLine] = scale;
    for (int64_t i = begin; i < end; ++i) codes[i] = encoded(values[i], inverse, format, random != nullptr ? random + i : nullptr);
  }
}

void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count) {
  const Format8 format = format8(dtype);
  for (int64_t i = 0; i < count; ++i) out[i] = canonical(decoded(codes[i], format) * scales[i / kLine]);
}

}  // namespace zero::kernels::reference
