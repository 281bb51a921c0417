/// @file real: the number that the model computes with, and its exponential.
/// fp32, or fp64 where GPT_DOUBLE is defined: the tests check layers against differences that way.
#ifndef GPT_REAL_H
#define GPT_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/// Before a function: compile it for wider vectors too, of which the processor's are chosen when the
/// program starts. Results have the same bits, because nothing is fused or reordered.
#ifdef GPT_CLONES
#define WIDEST __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WIDEST
#endif

#ifdef GPT_DOUBLE
typedef double real;

static inline real real_exp(real x) { return exp(x); }
static inline real real_sqrt(real x) { return sqrt(x); }
#else
typedef float real;

/// e^x within two units of the last place, for x clamped to -87 .. 88, by operations that compilers
/// turn into vector instructions, which calls of expf are not: x = n ln 2 + r, a polynomial in r
/// (Cephes, expf.c), and n added to the exponent.
static inline real real_exp(real x) {
  const float kRounder = 12582912.0f; /* 1.5 * 2^23: a sum with it has no fraction, and n in its low bits */
  float clamped = x < -87.0f ? -87.0f : x;
  clamped = clamped > 88.0f ? 88.0f : clamped;
  const float shifted = clamped * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}
static inline real real_sqrt(real x) { return sqrtf(x); }
#endif

#endif
