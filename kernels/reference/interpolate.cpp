/// @file Interpolation, plain: from + weight * (to - from) in fp32, computed from the nearer end as
/// torch's lerp does. NaN is stored as the one NaN 0x7fc00000. 12 bytes per element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void interpolate(float *out, const float *from, const float *to, float weight, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = interpolated(from[i], to[i], weight);
}

}  // namespace zero::kernels::reference
