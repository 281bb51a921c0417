/// @file One element of the plain element-wise operations. NaN results are the one NaN 0x7fc00000.
#pragma once

#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

ZERO_ELEMENT float scaled(float value, float factor) { return canonical(value * factor); }

ZERO_ELEMENT float added(float a, float b) { return canonical(a + b); }

/// Limited to [-limit, limit]; NaN stays NaN.
ZERO_ELEMENT float clamped(float value, float limit) {
  value = canonical(value);
  return value > limit ? limit : value < -limit ? -limit : value;
}

ZERO_ELEMENT float averaged(float average, float value, float weight) { return canonical(std::fma(weight, value - average, average)); }

/// addend * weight + value * factor.
ZERO_ELEMENT float combined(float value, float factor, float addend, float weight) {
  return canonical(std::fma(weight, addend, value * factor));
}

/// Interpolates from the nearer end.
ZERO_ELEMENT float interpolated(float from, float to, float weight) {
  const bool near_from = weight < 0.5F;
  return canonical(std::fma(near_from ? weight : weight - 1.0F, to - from, near_from ? from : to));
}

/// True if the value is not NaN and its magnitude is not above the limit.
ZERO_ELEMENT bool is_within(float value, float limit) { return std::fabs(value) <= limit; }

}  // namespace zero::kernels::reference
