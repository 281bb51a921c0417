/// @file values = fma(weight, addend, values * factor) in fp32, plain; NaN is stored as the one NaN
/// 0x7fc00000. 12 bytes per element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void combine(float *values, float factor, const float *addend, float weight, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = combined(values[i], factor, addend[i], weight);
}

}  // namespace zero::kernels::reference
