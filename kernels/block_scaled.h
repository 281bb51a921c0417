/// @file Slots of 8-bit floats with one fp32 scale per line of kLine elements: format and error. Knows no algorithm.
///
/// f8e4m3 (first moments): E4M3 of the Open Compute Project's 8-bit formats: sign, 4 exponent bits, 3 mantissa bits, bias 7; largest 448,
/// no infinity, NaN 0x7f and 0xff (0x7f is written).
/// f8ue5m3 (second moments): no sign, 5 exponent bits, 3 mantissa bits, bias 15; largest 114688 (0xfe), no infinity, NaN 0xff.
/// In both a code with exponent bits e and mantissa bits m is (8 + m) * 2^(e - bias - 3), for e = 0 m * 2^(1 - bias - 3).
///
///   value = code * scale in fp32
///   scale = absmax / largest in fp32, absmax over the finite elements of the line, but at least 2^-126; 0 when absmax is 0
///   code  = |x| * (1 / scale) in fp32, at most largest, rounded to nearest even, or stochastically as random.h says: the upper 20 bits of
///           the random number for the 20 bits that are cut, below the normal range as for f16
///
/// What is not finite becomes NaN in its own element and leaves its neighbours alone, as does a second moment below 0. A second moment
/// above 0 never becomes 0 (it takes code 1 at least): divided by its root, a first moment that is still there would leap.
///
/// Error of a finite element x, rounded to nearest: at most |x| / 16, or for small elements absmax / 458752 (f8e4m3), absmax / 3.0e10
/// (f8ue5m3; absmax / 1.5e10 where code 1 stands in for 0), absmax being at least 2^-126 * largest here; times 1 + 2^-20 for the fp32
/// arithmetic; twice that with stochastic rounding. Memory: 1 + 4 / 256 bytes per element, 2.03125 for both moments of AdamW.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

constexpr bool is_block_scaled(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8ue5m3; }

/// What tells the two formats apart.
struct Format8 {
  bool has_sign;
  uint32_t bias;
  uint32_t nan;  ///< its code
  float largest;
};

constexpr Format8 format8(DType dtype) { return dtype == DType::f8e4m3 ? Format8{true, 7, 0x7f, 448} : Format8{false, 15, 0xff, 114688}; }

namespace reference {
void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random);
void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count);
}  // namespace reference

}  // namespace zero::kernels
