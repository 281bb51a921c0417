/// @file Lines as integers behind one scale. An integer q stands for q * scale, with scale =
/// max |x| / 127 (8 bits) or / 7 (4 bits), so that the error of a value is at most half a scale.
/// If max |x| is below about 127 * 2^-128 or 7 * 2^-128, the scale and all values become 0.
#pragma once

#include "core/partition.h"
#include "kernels/coded_lines.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace zero::kernels::reference {

constexpr int64_t kScaleNbytes = sizeof(float);
using LineIntegers = std::array<int8_t, kLine>;

/// The bits of the largest magnitude. Bits order as magnitudes do; values that are not finite are
/// above all others.
inline uint32_t largest_bits(const float *values) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < kLine; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffU);
  return largest;
}

/// To the nearest, ties to even: the unit of the sum is 1.
inline int32_t rounded(float value) {
  constexpr float kShift = 12582912;
  return std::bit_cast<int32_t>(value + kShift) - std::bit_cast<int32_t>(kShift);
}

/// Returns 0 if the line is zero or too small to have an inverse, NaN if a value is not finite.
inline float line_integers(const float *values, int32_t most, LineIntegers &out) {
  const uint32_t bits = largest_bits(values);
  const float largest = std::bit_cast<float>(bits);
  const float inverse = static_cast<float>(most) / largest;
  constexpr uint32_t kInfinityBits = 0x7f800000;
  if (bits >= kInfinityBits || bits == 0 || std::isinf(inverse)) {
    out.fill(0);
    return bits >= kInfinityBits ? std::numeric_limits<float>::quiet_NaN() : 0;
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int8_t>(std::clamp(rounded(values[i] * inverse), -most, most));
  // `most` times the scale must not overflow.
  return std::min(largest / static_cast<float>(most), std::numeric_limits<float>::max() / static_cast<float>(most) * 0.9999999F);
}

inline void encode_i8(const Coder &, const Table &, const float *values, std::byte *out) {
  LineIntegers integers;
  const float scale = line_integers(values, 127, integers);
  std::memcpy(out, &scale, sizeof scale);
  std::memcpy(out + kScaleNbytes, integers.data(), integers.size());
}

inline void decode_i8(const Coder &, const Table &, const std::byte *coded, float *out) {
  float scale = 0;
  std::memcpy(&scale, coded, sizeof scale);
  const auto *integers = reinterpret_cast<const int8_t *>(coded + kScaleNbytes);
  for (int64_t i = 0; i < kLine; ++i) out[i] = static_cast<float>(integers[i]) * scale;
}

inline void encode_i4(const Coder &, const Table &, const float *values, std::byte *out) {
  LineIntegers integers;
  const float scale = line_integers(values, 7, integers);
  std::memcpy(out, &scale, sizeof scale);
  auto *pairs = reinterpret_cast<uint8_t *>(out + kScaleNbytes);
  for (size_t i = 0; i < integers.size() / 2; ++i) {
    pairs[i] = static_cast<uint8_t>((static_cast<uint32_t>(integers[2 * i]) & 15U) | (static_cast<uint32_t>(integers[2 * i + 1]) << 4));
  }
}

inline void decode_i4(const Coder &, const Table &, const std::byte *coded, float *out) {
  float scale = 0;
  std::memcpy(&scale, coded, sizeof scale);
  const auto *pairs = reinterpret_cast<const uint8_t *>(coded + kScaleNbytes);
  for (int64_t i = 0; i < kLine / 2; ++i) {
    out[2 * i] = static_cast<float>(static_cast<int8_t>(pairs[i] << 4) >> 4) * scale;
    out[2 * i + 1] = static_cast<float>(static_cast<int8_t>(pairs[i]) >> 4) * scale;
  }
}

}  // namespace zero::kernels::reference
