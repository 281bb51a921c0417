/// @file Limits values to [-limit, limit], plain; NaN is stored as the one NaN 0x7fc00000. 8 bytes
/// per element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void clamp(float *out, const float *values, int64_t count, float limit) {
  for (int64_t i = 0; i < count; ++i) out[i] = clamped(values[i], limit);
}

}  // namespace zero::kernels::reference
