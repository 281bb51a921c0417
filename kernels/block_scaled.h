/// @file Block-scaled floats: slots of 8-bit floats with one fp32 scale per line of kLine elements.
/// States the formats and their errors. Knows no algorithm.
///
/// - f8e4m3 (first moments) is E4M3 of the Open Compute Project: sign, 4 exponent bits, 3 mantissa
///   bits, bias 7. The largest value is 448. There is no infinity. NaN is 0x7f or 0xff; 0x7f is
///   written.
/// - f8ue5m3 (second moments): no sign, 5 exponent bits, 3 mantissa bits, bias 15. The largest
///   value is 114688 (0xfe). There is no infinity. NaN is 0xff.
///
/// A code with exponent bits e and mantissa bits m stands for (8 + m) * 2^(e - bias - 3); if e is
/// 0, it stands for m * 2^(1 - bias - 3).
///
/// @verbatim
///   value  = code * scale, in fp32
///   absmax = the largest magnitude of the finite elements of the line
///   scale  = 0 if absmax is 0, otherwise max(absmax / largest, 2^-126), in fp32
///   code   = min(|x| * (1 / scale), largest) in fp32, rounded to nearest even or stochastically
/// @endverbatim
///
/// Stochastic rounding follows random.h. The upper 20 bits of the random number are added to the 20
/// bits that are cut. Values below the normal range are rounded as those of f16.
///
/// An element that is not finite becomes NaN and leaves its neighbours alone, as does a second
/// moment below 0. A second moment above 0 gets at least code 1. If it became 0, a first moment
/// divided by its root would be huge.
///
/// The error of a finite element x rounded to nearest is at most |x| / 16. Small elements instead
/// have an error of at most absmax / 458752 (f8e4m3) or absmax / 3.0e10 (f8ue5m3; absmax / 1.5e10
/// if code 1 stands in for 0). Here absmax counts as at least 2^-126 * largest. The fp32 arithmetic
/// multiplies these bounds by 1 + 2^-20, and stochastic rounding doubles them. Memory: 1 + 4 / 256
/// bytes per element, 2.03125 for both moments of AdamW.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

constexpr bool is_block_scaled(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8ue5m3; }

/// The properties in which the two formats differ.
struct Format8 {
  bool has_sign;
  uint32_t bias;
  uint32_t nan;  ///< the code of NaN
  float largest;
};

constexpr Format8 format8(DType dtype) { return dtype == DType::f8e4m3 ? Format8{true, 7, 0x7f, 448} : Format8{false, 15, 0xff, 114688}; }

namespace reference {
void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random);
void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count);
}  // namespace reference

}  // namespace zero::kernels
