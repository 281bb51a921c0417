/// @file precision: elements of 16-bit parameters and gradients to and from the fp32 that the model computes in.
/// Knows nothing of tensors, only of dtypes.
#ifndef EXAMPLES_PRECISION_H
#define EXAMPLES_PRECISION_H

#include <stdint.h>

/// to[i] = from[i], exactly; dtype is ZERO_DTYPE_BF16 or ZERO_DTYPE_F16.
void precision_widen(int32_t dtype, const uint16_t *from, int64_t count, float *to);

/// to[i] = from[i] rounded to nearest, ties to even; what is too large becomes infinity, which the step then finds.
void precision_narrow(int32_t dtype, const float *from, int64_t count, uint16_t *to);

#endif
