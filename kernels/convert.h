/// @file Elements of f32, f16 or bf16 as fp32 and back. Knows formats, not what the elements are for.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

/// out = values in fp32. f16 and bf16: any NaN becomes the one NaN 0x7fc00000. f32: a copy. The ranges must not overlap.
void widen(const Table &table, float *out, const void *values, DType dtype, int64_t count);

/// out = values rounded to nearest, ties to even; beyond the largest value of the dtype is infinity. Any NaN becomes the dtype's one NaN
/// (0x7fc00000, 0x7e00, 0x7fc0). The ranges must not overlap.
void narrow(const Table &table, void *out, DType dtype, const float *values, int64_t count);

}  // namespace zero::kernels
