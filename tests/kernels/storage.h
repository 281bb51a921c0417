/// @file Storage: elements of any slot dtype in the kernel tests. Roundings follow the definitions
/// of the formats in float64 and share no code with the kernels.
#pragma once

#include "core/dtype.h"
#include "core/partition.h"
#include "tests/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace zero::kernels::test {

inline float half_value(DType dtype, uint16_t bits) {
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return static_cast<float>(std::bit_cast<zero::test::Half>(bits));
}

/// A binary format without its sign.
struct Format {
  int fraction_nbits;
  int least_exponent;  ///< least exponent of normal values
  double largest;
};

inline Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
      return {3, -6, 448};
    case DType::f8ue5m3:
      return {3, -14, 114688};
    case DType::f16:
      return {10, -14, 65504};
    case DType::bf16:
      return {7, -126, 0x1.fep127};
    default:
      return {23, -126, 0x1.fffffep127};
  }
}

/// The distance of neighbours at a finite value.
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

/// The rule of kernels/random.h in float64, for an fp32 value.
inline double round_stochastic(double value, DType dtype, uint32_t random) {
  const Format format = format_of(dtype);
  if (!std::isfinite(value)) return value;
  const double unit = quantum(value, format);
  const double units = std::fabs(value) / unit;
  double whole = std::floor(units);
  const double part = units - whole;
  if (dtype != DType::bf16 && std::fabs(value) < std::ldexp(1.0, format.least_exponent)) {
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

inline bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8ue5m3; }

/// The value of a code without its scale, from the formats' definitions.
inline double f8_value(DType dtype, uint8_t code) {
  const bool has_sign = dtype == DType::f8e4m3;
  const int magnitude = has_sign ? code & 0x7f : code;
  if (magnitude == (has_sign ? 0x7f : 0xff)) return std::numeric_limits<double>::quiet_NaN();
  const int exponent = magnitude >> 3;
  const int bias = has_sign ? 7 : 15;
  const double value = exponent == 0 ? std::ldexp(magnitude & 7, 1 - bias - 3) : std::ldexp(8 + (magnitude & 7), exponent - bias - 3);
  return code != magnitude ? -value : value;
}

/// The code of a value of the format, found by a search over all codes.
inline uint8_t f8_code(DType dtype, double value) {
  for (int code = 0; code < 256; ++code) {
    const double candidate = f8_value(dtype, static_cast<uint8_t>(code));
    const bool same = std::isnan(value) ? std::isnan(candidate) : candidate == value && std::signbit(candidate) == std::signbit(value);
    if (same) return static_cast<uint8_t>(code);
  }
  return 0;
}

/// Half the distance of neighbours at a finite value; for 8-bit formats see kernels/block_scaled.h.
inline double half_quantum(double value, DType dtype, double scale) {
  if (!is_f8(dtype)) return quantum(value, format_of(dtype)) / 2;
  const bool is_second = dtype == DType::f8ue5m3;
  const double least = is_second ? std::ldexp(1.0, value > 0 ? -17 : -18) : std::ldexp(1.0, -10);
  return std::max(std::fabs(value) / 16, least * scale) * (1 + 0x1p-20);
}

/// Elements of one slot, with one extra element at the end that must stay unchanged.
class Stored {
 public:
  Stored(DType dtype, int64_t count)
      : dtype_(dtype),
        bytes_(static_cast<size_t>((count + 1) * dtype_nbytes(dtype)), 0x5a),
        scales_(is_f8(dtype) ? static_cast<size_t>((count + kLine - 1) / kLine + 1) : 0, 7.0F) {}

  DType dtype() const { return dtype_; }
  void *data() { return bytes_.data(); }
  float *scales() { return scales_.data(); }
  float scale(int64_t line) const { return scales_.empty() ? 0 : scales_[static_cast<size_t>(line)]; }

  /// Returns NaN in one form.
  float get(int64_t index) const {
    float value = 0;
    if (dtype_ == DType::f32) {
      std::memcpy(&value, at(index), sizeof value);
    } else if (is_f8(dtype_)) {
      value = static_cast<float>(f8_value(dtype_, *at(index)) * double{scale(index / kLine)});
    } else {
      value = half_value(dtype_, get_bits(index));
    }
    return std::isnan(value) ? std::bit_cast<float>(0x7fc00000U) : value;
  }

  /// Stores a value of the dtype.
  void set(int64_t index, double value) {
    const auto single = std::isnan(value) ? std::bit_cast<float>(0x7fc00000U) : static_cast<float>(value);
    if (dtype_ == DType::f32) {
      put(index, single);
    } else if (dtype_ == DType::bf16) {
      put(index, static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16));
    } else {
      put(index, std::isnan(value) ? uint16_t{0x7e00} : std::bit_cast<uint16_t>(static_cast<zero::test::Half>(single)));
    }
  }
  void set_nearest(int64_t index, double value) { set(index, round_nearest(value, format_of(dtype_))); }

  /// Rounds all elements as the update does; `random` nullptr or one number per element.
  void assign(const std::vector<float> &values, const uint32_t *random) {
    const auto count = static_cast<int64_t>(values.size());
    for (int64_t begin = 0; is_f8(dtype_) && begin < count; begin += kLine)
      assign_line(values, begin, std::min(begin + kLine, count), random);
    for (int64_t i = 0; !is_f8(dtype_) && i < count; ++i)
      set_rounded(i, values[static_cast<size_t>(i)], random != nullptr ? random + i : nullptr);
  }

  /// Rounds as the update does: to nearest without a random number.
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

  /// Copies `count` elements of another slot to element `index` on. With scales, `index` is on a
  /// line.
  void put_at(int64_t index, const Stored &other, int64_t count) {
    std::memcpy(bytes_.data() + index * dtype_nbytes(dtype_), other.at(0), static_cast<size_t>(count * dtype_nbytes(dtype_)));
    for (int64_t line = 0; is_f8(dtype_) && line < (count + kLine - 1) / kLine; ++line) {
      scales_[static_cast<size_t>(index / kLine + line)] = other.scale(line);
    }
  }

  friend bool operator==(const Stored &, const Stored &) = default;

 private:
  void assign_line(const std::vector<float> &values, int64_t begin, int64_t end, const uint32_t *random) {
    const auto format = format_of(dtype_);
    float absmax = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float magnitude = std::fabs(values[static_cast<size_t>(i)]);
      if (std::isfinite(magnitude)) absmax = std::max(absmax, magnitude);
    }
    const float scale = absmax == 0 ? 0 : std::max(absmax / static_cast<float>(format.largest), std::ldexp(1.0F, -126));
    scales_[static_cast<size_t>(begin / kLine)] = scale;
    for (int64_t i = begin; i < end; ++i) {
      const float value = values[static_cast<size_t>(i)];
      const float inverse = scale == 0 ? 0 : 1 / scale;
      const double scaled = std::min(double{std::fabs(value) * inverse}, format.largest);
      double rounded = random != nullptr ? round_stochastic(scaled, dtype_, random[i]) : round_nearest(scaled, format);
      if (dtype_ == DType::f8ue5m3 && value > 0) rounded = std::max(rounded, f8_value(dtype_, 1));
      const bool invalid = !std::isfinite(value) || (dtype_ == DType::f8ue5m3 && value < 0);
      if (dtype_ == DType::f8e4m3) rounded = std::copysign(rounded, value);
      put(i, f8_code(dtype_, invalid ? std::numeric_limits<double>::quiet_NaN() : rounded));
    }
  }

  const uint8_t *at(int64_t index) const { return bytes_.data() + index * dtype_nbytes(dtype_); }
  template <class Bits>
  void put(int64_t index, Bits bits) {
    std::memcpy(bytes_.data() + index * dtype_nbytes(dtype_), &bits, sizeof bits);
  }

  DType dtype_;
  std::vector<uint8_t> bytes_;
  std::vector<float> scales_;
};

}  // namespace zero::kernels::test
