/// @file Targets: the functions of the table, which every target defines in a namespace of its own.
/// Included by files that are compiled once per target with ZERO_KERNEL_NAMESPACE set. Nothing here
/// may have a body, or a generic caller could be linked to another target's code.
#pragma once

#include "kernels/kernels.h"

#ifndef ZERO_KERNEL_NAMESPACE
#error "compile this file once per target, with ZERO_KERNEL_NAMESPACE naming it"
#endif

namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

bool reduce(const Reduction &reduction);
bool all_within(const void *values, DType dtype, int64_t count, float limit);
bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, bool streams);
void stream(void *out, const void *values, int64_t nbytes);
void flush();
void scale(float *out, const float *values, int64_t count, float scale);
void widen(float *out, const void *values, DType dtype, int64_t count);
void narrow(void *out, DType dtype, const float *values, int64_t count);
void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first);
void narrow_stochastic(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random);
void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count);
void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count);
void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random);
void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count);
void add(float *out, const float *a, const float *b, int64_t count);
void clamp(float *out, const float *values, int64_t count, float limit);
void average(float *average, const float *values, int64_t count, float weight);
void add_squares(const void *values, DType dtype, int64_t count, ExactSum &sum);
#define ZERO_DECLARATION(kernel, Algorithm) void kernel(const Slots &slots, const Constants &constants);
ZERO_UPDATE_KERNELS(ZERO_DECLARATION)
#undef ZERO_DECLARATION
void lamb(const Slots &slots, const Constants &constants);
void lamb_moments(const Slots &slots, const Constants &constants);
void lamb_direction(float *out, const Slots &slots, const Constants &constants);
void multiply(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, float *workspace);
void multiply_symmetric(float *out, const float *a, const float *b, int64_t side, int64_t inner, float *workspace);
void combine(float *values, float factor, const float *addend, float weight, int64_t count);
void interpolate(float *out, const float *from, const float *to, float weight, int64_t count);

extern const Table kTable;

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
