/// @file half: one element in a 16-bit form of fp32, on the bits (IEEE 754 binary16; bf16 is the upper half of binary32). C, C++ and CUDA.
/// Knows nothing of tensors or dtypes.
#ifndef EXAMPLES_HALF_H
#define EXAMPLES_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HALF_FUNCTION static inline __host__ __device__
#else
#define HALF_FUNCTION static inline
#endif

enum { kF32Infinity = 0x7f800000, kF16Infinity = 0x7c00, kF16FirstNormal = 0x400, kExponentShift = (127 - 15) << 23 };

HALF_FUNCTION uint32_t half_bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

HALF_FUNCTION float half_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

HALF_FUNCTION float half_widen_bf16(uint16_t half) { return half_of_bits((uint32_t)half << 16); }

HALF_FUNCTION uint16_t half_narrow_bf16(float value) {
  const uint32_t bits = half_bits_of(value);
  if ((bits & 0x7fffffff) > kF32Infinity) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

HALF_FUNCTION float half_widen_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  const uint32_t rest = half & 0x7fff;
  if (rest >= kF16Infinity) return half_of_bits(sign | kF32Infinity | (rest & 0x3ff) << 13);
  if (rest >= kF16FirstNormal) return half_of_bits(sign | ((rest << 13) + kExponentShift));
  return half_of_bits(sign | half_bits_of((float)rest * 0x1p-24f));
}

HALF_FUNCTION uint16_t half_narrow_f16(float value) {
  const uint32_t magnitude = half_bits_of(value) & 0x7fffffff;
  const uint16_t sign = (uint16_t)(half_bits_of(value) >> 16 & 0x8000);
  if (magnitude > kF32Infinity) return 0x7e00;
  if (magnitude >= half_bits_of(65520.0f)) return sign | kF16Infinity;
  /* Below 2^-14 the unit is 2^-24, which is also the unit of floats in 0.5 .. 1: the addition rounds. */
  if (magnitude < half_bits_of(0x1p-14f)) return (uint16_t)(sign | (half_bits_of(half_of_bits(magnitude) + 0.5f) - half_bits_of(0.5f)));
  return (uint16_t)(sign | (magnitude - kExponentShift + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

#endif
