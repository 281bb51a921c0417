/// @file precision: conversions of arrays between fp32 and its 16-bit forms.
/// Knows nothing of tensors, only of dtypes.
#include "precision.h"

#include <zero/dtype.h>

#include "half.h"

void precision_widen(int32_t dtype, const uint16_t *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i++) to[i] = dtype == ZERO_DTYPE_BF16 ? half_widen_bf16(from[i]) : half_widen_f16(from[i]);
}

void precision_narrow(int32_t dtype, const float *from, int64_t count, uint16_t *to) {
  for (int64_t i = 0; i < count; i++) to[i] = dtype == ZERO_DTYPE_BF16 ? half_narrow_bf16(from[i]) : half_narrow_f16(from[i]);
}
