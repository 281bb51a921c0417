/// @file Plain loops over ranges, which the SIMD targets use for their last few elements. reference/ states the formulas.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels::reference {

bool all_finite(const float *values, int64_t count);
void scale(float *out, const float *values, int64_t count, float scale);
void add_squares(const float *values, int64_t count, ExactSum &sum);

}  // namespace zero::kernels::reference
