/// @file Lines of which the largest magnitudes travel (top-k: Lin et al., "Deep gradient
/// compression", 2018), as integers behind one scale: index byte and integer of each, by index.
#pragma once

#include "kernels/reference/integer_lines-inl.h"

#include <algorithm>
#include <cstring>

namespace zero::kernels::reference {

/// Orders as magnitudes do.
inline int32_t magnitude_bits(float value) { return static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7fffffffU); }

/// A loop without branches, which compilers turn into vectors.
inline int64_t count_above(const float *values, int32_t bits) {
  int32_t count = 0;
  for (int64_t i = 0; i < kLine; ++i) count += magnitude_bits(values[i]) > bits ? 1 : 0;
  return count;
}

/// The bits of the magnitude that stands at place `kept`, found bit by bit from above.
inline int32_t least_kept(const float *values, int64_t kept) {
  int32_t least = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const int32_t higher = least | (1 << bit);
    if (count_above(values, higher - 1) >= kept) least = higher;
  }
  return least;
}

/// If several magnitudes equal the least one kept, the first of them travel.
inline void encode_top(const Coder &coder, const Table &, const float *values, std::byte *out) {
  LineIntegers integers;
  const float scale = line_integers(values, 127, integers);
  std::memcpy(out, &scale, sizeof scale);
  const int32_t least = least_kept(values, coder.kept);
  int64_t equal = coder.kept - count_above(values, least);
  auto *indices = reinterpret_cast<uint8_t *>(out + kScaleNbytes);
  auto *kept = reinterpret_cast<int8_t *>(indices + coder.kept);
  for (int64_t i = 0; i < kLine; ++i) {
    const int32_t bits = magnitude_bits(values[i]);
    if (bits < least || (bits == least && equal-- <= 0)) continue;
    *indices++ = static_cast<uint8_t>(i);
    *kept++ = integers[static_cast<size_t>(i)];
  }
}

/// A scale that is NaN makes all values NaN.
inline void decode_top(const Coder &coder, const Table &, const std::byte *coded, float *out) {
  float scale = 0;
  std::memcpy(&scale, coded, sizeof scale);
  std::fill_n(out, kLine, 0 * scale);
  const auto *indices = reinterpret_cast<const uint8_t *>(coded + kScaleNbytes);
  const auto *kept = reinterpret_cast<const int8_t *>(indices + coder.kept);
  for (int64_t i = 0; i < coder.kept; ++i) out[indices[i]] = static_cast<float>(kept[i]) * scale;
}

}  // namespace zero::kernels::reference
