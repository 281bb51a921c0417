/// @file out = values * scale in fp32, plain; NaN is stored as the one NaN 0x7fc00000. 8 bytes per
/// element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void scale(float *out, const float *values, int64_t count, float scale) {
  for (int64_t i = 0; i < count; ++i) out[i] = scaled(values[i], scale);
}

}  // namespace zero::kernels::reference
