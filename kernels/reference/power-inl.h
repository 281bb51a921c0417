/// @file Powers with whole exponents: the same bits on the host and on devices, whose own functions
/// differ. Computed by squaring (Knuth, "The Art of Computer Programming", volume 2, section 4.6.3)
/// in pairs of doubles. Products of pairs are exact to about 100 bits (Dekker, "A floating-point
/// technique for extending the available precision", 1971), so only the final rounding to a double
/// loses bits.
#pragma once

#include "kernels/reference/element.h"

#include <cmath>
#include <cstdint>

namespace zero::kernels::reference {

/// high + low, |low| at most half a unit in the last place of high.
struct Pair {
  double high, low;
};

ZERO_ELEMENT Pair multiplied(const Pair &a, const Pair &b) {
  const double product = a.high * b.high;
  const double rest = std::fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
  const double high = product + rest;
  return {high, rest - (high - product)};
}

/// 0 <= base < 1, exponent >= 0.
ZERO_ELEMENT double power(double base, int64_t exponent) {
  Pair result = {1, 0};
  Pair square = {base, 0};
  for (; exponent > 0 && result.high > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = multiplied(result, square);
    square = multiplied(square, square);
  }
  return result.high;
}

}  // namespace zero::kernels::reference
