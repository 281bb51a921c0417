/// @file Elements of any slot dtype as the kernel tests keep them, with roundings written from the formats' definitions in float64: nothing
/// here is shared with the kernels.
#pragma once

#include "core/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace zero::kernels::test {

inline float half_value(DType dtype, uint16_t bits) {
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

/// A binary format without its sign.
struct Format {
  int fraction_nbits;
  int least_exponent;  ///< of normal values
  double largest;
};

inline Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {10, -14, 65504};
    case DType::bf16:
      return {7, -126, 0x1.fep127};
    default:
      return {23, -126, 0x1.fffffep127};
  }
}

/// The distance of neighbours around a finite value.
inline double quantum(double value, const Format &format) {
  int exponent = 0;
  std::frexp(value, &exponent);
  if (value == 0 || exponent - 1 < format.least_exponent) exponent = format.least_exponent + 1;
  return std::ldexp(1.0, exponent - 1 - format.fraction_nbits);
}

/// The nearest value of a format with infinities, ties to even.
inline double round_nearest(double value, const Format &format) {
  if (!std::isfinite(value)) return value;
  const double unit = quantum(value, format);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > format.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

/// The rule of kernels/random.h in float64, for a value that fp32 has.
inline double round_stochastic(double value, DType dtype, uint32_t random) {
  const Format format = format_of(dtype);
  if (!std::isfinite(value)) return value;
  const double unit = quantum(value, format);
  const double units = std::fabs(value) / unit;
  double whole = std::floor(units);
  const double part = units - whole;
  if (dtype == DType::f16 && std::fabs(value) < 0x1p-14) {
    whole += std::ldexp(random >> 8, -24) < part ? 1 : 0;
  } else {
    const int cut = 23 - format.fraction_nbits;  // bits
    whole += part + std::ldexp(random >> (32 - cut), -cut) >= 1 ? 1 : 0;
  }
  const double rounded = std::copysign(whole * unit, value);
  return std::fabs(rounded) > format.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

/// The nearest bf16, ties away from zero.
inline double round_away(double value) {
  if (!std::isfinite(value)) return value;
  const double unit = quantum(value, format_of(DType::bf16));
  return std::round(value / unit) * unit;  // std::round takes ties away from zero
}

/// Elements of one slot, with one more behind the last that must stay as it is.
class Stored {
 public:
  Stored(DType dtype, int64_t count) : dtype_(dtype), bytes_(static_cast<size_t>((count + 1) * dtype_nbytes(dtype)), 0x5a) {}

  DType dtype() const { return dtype_; }
  void *data() { return bytes_.data(); }

  /// NaN in its one form.
  float get(int64_t index) const {
    float value = 0;
    if (dtype_ == DType::f32) {
      std::memcpy(&value, at(index), sizeof value);
    } else {
      value = half_value(dtype_, get_bits(index));
    }
    return std::isnan(value) ? std::bit_cast<float>(0x7fc00000U) : value;
  }

  /// A value that the dtype has.
  void set(int64_t index, double value) {
    const auto single = std::isnan(value) ? std::bit_cast<float>(0x7fc00000U) : static_cast<float>(value);
    if (dtype_ == DType::f32) {
      put(index, single);
    } else if (dtype_ == DType::bf16) {
      put(index, static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16));
    } else {
      put(index, std::isnan(value) ? uint16_t{0x7e00} : std::bit_cast<uint16_t>(static_cast<_Float16>(single)));
    }
  }
  void set_nearest(int64_t index, double value) { set(index, round_nearest(value, format_of(dtype_))); }

  /// As the update rounds: nearest without a random number.
  void set_rounded(int64_t index, double value, const uint32_t *random) {
    if (random == nullptr || dtype_ == DType::f32) return set_nearest(index, value);
    set(index, round_stochastic(value, dtype_, *random));
  }

  uint16_t get_bits(int64_t index) const {
    uint16_t bits = 0;
    std::memcpy(&bits, at(index), sizeof bits);
    return bits;
  }
  void set_bits(int64_t index, uint16_t bits) { put(index, bits); }

  friend bool operator==(const Stored &, const Stored &) = default;

 private:
  const uint8_t *at(int64_t index) const { return bytes_.data() + index * dtype_nbytes(dtype_); }
  template <class Bits>
  void put(int64_t index, Bits bits) {
    std::memcpy(bytes_.data() + index * dtype_nbytes(dtype_), &bits, sizeof bits);
  }

  DType dtype_;
  std::vector<uint8_t> bytes_;
};

}  // namespace zero::kernels::test
