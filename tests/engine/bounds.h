/// @file Bounds: numbers in float64 with their error bars, for references that owe nothing to the library's arithmetic.
/// Knows roundings of fp32 and of storage formats; never what is computed.
#pragma once

#include "core/dtype.h"
#include "tests/kernels/storage.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace zero::test {

/// Half the distance of fp32 neighbours over their magnitude. The last factor makes room for the float64 arithmetic of the bounds, whose
/// own roundings are 2^-29 of fp32's.
inline constexpr double kUnit = 0x1p-24 * (1 + 0x1p-20);
/// Half the smallest fp32 number.
inline constexpr double kLeast = 0x1p-150;

/// All numbers from low to high.
struct Bounds {
  double low = 0;
  double high = 0;

  static Bounds exactly(double value) { return {value, value}; }
  double magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
  double width() const { return high - low; }
  double middle() const { return (low + high) / 2; }
  bool hold(double value) const { return low <= value && value <= high; }
  Bounds wider(double error) const { return {low - error, high + error}; }
  /// After `roundings` fp32 operations whose results are at most the number itself.
  Bounds rounded(int roundings = 1) const { return low == 0 && high == 0 ? *this : wider(roundings * (kUnit * magnitude() + kLeast)); }
};

inline Bounds operator+(Bounds a, Bounds b) { return {a.low + b.low, a.high + b.high}; }
inline Bounds operator-(Bounds a, Bounds b) { return {a.low - b.high, a.high - b.low}; }
inline Bounds operator*(Bounds a, Bounds b) {
  const double products[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}
inline Bounds operator*(double factor, Bounds a) { return Bounds::exactly(factor) * a; }
/// `b` holds positive numbers only.
inline Bounds operator/(Bounds a, Bounds b) { return a * Bounds{1 / b.high, 1 / b.low}; }
inline Bounds magnitude_of(Bounds a) {
  const bool around = a.low <= 0 && a.high >= 0;
  return {around ? 0 : std::min(std::fabs(a.low), std::fabs(a.high)), a.magnitude()};
}
inline Bounds square_of(Bounds a) {
  const Bounds size = magnitude_of(a);
  return {size.low * size.low, size.high * size.high};
}
inline Bounds root_of(Bounds a) { return {std::sqrt(std::max(a.low, 0.0)), std::sqrt(std::max(a.high, 0.0))}; }

/// Rounded to the nearest value of a dtype: rounding never changes the order of numbers, so the ends may be rounded.
inline Bounds stored(Bounds a, DType dtype) {
  if (dtype == DType::f32) return a;
  const auto format = kernels::test::format_of(dtype);
  return {kernels::test::round_nearest(a.low, format), kernels::test::round_nearest(a.high, format)};
}

/// One number, rounded to the nearest value of a dtype.
inline double nearest(double value, DType dtype) { return kernels::test::round_nearest(value, kernels::test::format_of(dtype)); }

}  // namespace zero::test
