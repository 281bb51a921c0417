/// @file Lines of signs, a bit each (1 is negative), behind their mean magnitude (1-bit codes:
/// Seide et al., 2014; their scale: Karimireddy et al., "Error feedback fixes SignSGD", 2019).
#pragma once

#include "core/partition.h"
#include "kernels/coded_lines.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace zero::kernels::reference {

/// Added in float64, in order, which no 256 finite magnitudes overflow. NaN if one is not finite.
inline float mean_magnitude(const float *values) {
  double sum = 0;
  for (int64_t i = 0; i < kLine; ++i) sum += static_cast<double>(std::fabs(values[i]));
  return std::isfinite(sum) ? static_cast<float>(sum / static_cast<double>(kLine)) : std::numeric_limits<float>::quiet_NaN();
}

inline void encode_sign(const Coder &, const Table &, const float *values, std::byte *out) {
  const float scale = mean_magnitude(values);
  std::memcpy(out, &scale, sizeof scale);
  auto *bytes = reinterpret_cast<uint8_t *>(out + sizeof scale);
  for (int64_t i = 0; i < kLine; i += 8) {
    uint32_t bits = 0;
    for (int64_t k = 0; k < 8; ++k) bits |= (values[i + k] < 0 ? 1U : 0U) << k;
    *bytes++ = static_cast<uint8_t>(bits);
  }
}

inline void decode_sign(const Coder &, const Table &, const std::byte *coded, float *out) {
  float scale = 0;
  std::memcpy(&scale, coded, sizeof scale);
  const auto *bytes = reinterpret_cast<const uint8_t *>(coded + sizeof scale);
  const auto scale_bits = std::bit_cast<uint32_t>(scale);
  for (int64_t i = 0; i < kLine; ++i) {
    const uint32_t negative = (static_cast<uint32_t>(bytes[i / 8]) >> (i % 8)) & 1;
    out[i] = std::bit_cast<float>(scale_bits ^ (negative << 31));
  }
}

}  // namespace zero::kernels::reference
