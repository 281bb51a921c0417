/// @file Conversions: elements of f32, f16 or bf16 to fp32 and back, and the random numbers for
/// stochastic rounding. Knows formats, not the use of elements.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

/// out = values in fp32. f16 and bf16: any NaN becomes the one NaN 0x7fc00000. f32: a copy. The
/// ranges must not overlap.
void widen(const Table &table, float *out, const void *values, DType dtype, int64_t count);

/// out = values rounded to nearest, ties to even. Values beyond the largest of the dtype become
/// infinity. Any NaN becomes the dtype's one NaN (0x7fc00000, 0x7e00, 0x7fc0). The ranges must not
/// overlap.
void narrow(const Table &table, void *out, DType dtype, const float *values, int64_t count);

/// Makes the random numbers that Table::narrow_stochastic and Table::encode take for `count`
/// elements of a dtype. `first` is the place of the first element, a multiple of 8.
void make_random(const Table &table, uint32_t *out, DType dtype, int64_t count, const RandomKey &key, uint64_t first);

}  // namespace zero::kernels
