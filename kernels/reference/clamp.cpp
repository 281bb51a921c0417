/// @file Limits values to [-limit, limit], plain; NaN is stored as the one NaN 0x7fc00000. 8 bytes per element must move.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void clamp(float *out, const float *values, int64_t count, float limit) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = canonical(values[i]);
    out[i] = value > limit ? limit : value < -limit ? -limit : value;
  }
}

}  // namespace zero::kernels::reference
