/// @file Lines of which the largest magnitudes travel (top-k: Lin et al., "Deep gradient
/// compression", 2018), as integers behind one scale: index byte and integer of each, by index.
#pragma once

#include "kernels/reference/integer_lines-inl.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace zero::kernels::reference {

/// Bits of magnitudes, which order as these do.
using LineMagnitudes = std::array<int32_t, kLine>;

inline LineMagnitudes magnitudes_of(const float *values) {
  LineMagnitudes bits;
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<int32_t>(std::bit_cast<uint32_t>(values[i]) & 0x7fffffffU);
  return bits;
}

/// A loop without branches, which compilers turn into vectors.
inline int64_t count_above(const LineMagnitudes &magnitudes, int32_t bits) {
  int32_t count = 0;
  for (const int32_t each : magnitudes) count += each > bits ? 1 : 0;
  return count;
}

/// The largest bound that at least `kept` magnitudes reach, or one that so many reach exactly:
/// found bit by bit from above.
inline int32_t least_kept(const LineMagnitudes &magnitudes, int64_t kept) {
  int32_t least = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const int32_t higher = least | (1 << bit);
    const int64_t count = count_above(magnitudes, higher - 1);
    if (count >= kept) least = higher;
    if (count == kept) break;
  }
  return least;
}

/// If several magnitudes equal the least one kept, the first of them travel.
inline void encode_top(const Coder &coder, const Table &, const float *values, std::byte *out) {
  LineIntegers integers;
  const float scale = line_integers(values, 127, integers);
  std::memcpy(out, &scale, sizeof scale);
  const LineMagnitudes magnitudes = magnitudes_of(values);
  const int32_t least = least_kept(magnitudes, coder.kept);
  int64_t equal = coder.kept - count_above(magnitudes, least);
  auto *indices = reinterpret_cast<uint8_t *>(out + kScaleNbytes);
  auto *kept = reinterpret_cast<int8_t *>(indices + coder.kept);
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    if (magnitudes[i] < least || (magnitudes[i] == least && equal-- <= 0)) continue;
    *indices++ = static_cast<uint8_t>(i);
    *kept++ = integers[i];
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
