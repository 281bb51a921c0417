/// @file precision: conversions between fp32 and its 16-bit forms, on the bits (IEEE 754 binary16; bf16 is the upper half of binary32).
/// Knows nothing of tensors, only of dtypes.
#include "precision.h"

#include <string.h>
#include <zero/dtype.h>

enum { kF32Infinity = 0x7f800000, kF16Infinity = 0x7c00, kF16FirstNormal = 0x400, kExponentShift = (127 - 15) << 23 };

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static float widen_bf16(uint16_t half) { return of_bits((uint32_t)half << 16); }

static uint16_t narrow_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > kF32Infinity) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  const uint32_t rest = half & 0x7fff;
  if (rest >= kF16Infinity) return of_bits(sign | kF32Infinity | (rest & 0x3ff) << 13);
  if (rest >= kF16FirstNormal) return of_bits(sign | ((rest << 13) + kExponentShift));
  return of_bits(sign | bits_of((float)rest * 0x1p-24f));
}

static uint16_t narrow_f16(float value) {
  const uint32_t magnitude = bits_of(value) & 0x7fffffff;
  const uint16_t sign = (uint16_t)(bits_of(value) >> 16 & 0x8000);
  if (magnitude > kF32Infinity) return 0x7e00;
  if (magnitude >= bits_of(65520.0f)) return sign | kF16Infinity;
  /* Below 2^-14 the unit is 2^-24, which is also the unit of floats in 0.5 .. 1: the addition rounds. */
  if (magnitude < bits_of(0x1p-14f)) return (uint16_t)(sign | (bits_of(of_bits(magnitude) + 0.5f) - bits_of(0.5f)));
  return (uint16_t)(sign | (magnitude - kExponentShift + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

void precision_widen(int32_t dtype, const uint16_t *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i++) to[i] = dtype == ZERO_DTYPE_BF16 ? widen_bf16(from[i]) : widen_f16(from[i]);
}

void precision_narrow(int32_t dtype, const float *from, int64_t count, uint16_t *to) {
  for (int64_t i = 0; i < count; i++) to[i] = dtype == ZERO_DTYPE_BF16 ? narrow_bf16(from[i]) : narrow_f16(from[i]);
}
