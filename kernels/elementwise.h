/// @file Plain loops over ranges, which the SIMD targets use for their last few elements.
/// reference/ states the formulas.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels::reference {

bool all_within(const void *values, DType dtype, int64_t count, float limit);
bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, bool streams);
void stream(void *out, const void *values, int64_t nbytes);
void scale(float *out, const float *values, int64_t count, float scale);
void widen(float *out, const void *values, DType dtype, int64_t count);
void narrow(void *out, DType dtype, const float *values, int64_t count);
void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first);
void narrow_stochastic(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random);
void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count);
void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count);
void add(float *out, const float *a, const float *b, int64_t count);
void clamp(float *out, const float *values, int64_t count, float limit);
void combine(float *values, float factor, const float *addend, float weight, int64_t count);
void interpolate(float *out, const float *from, const float *to, float weight, int64_t count);
void average(float *average, const float *values, int64_t count, float weight);
void add_squares(const void *values, DType dtype, int64_t count, ExactSum &sum);

}  // namespace zero::kernels::reference
