/// @file from + weight * (to - from) in fp32, plain, as torch's lerp: from the end that is nearer. NaN is stored as the one NaN 0x7fc00000.
/// 12 bytes per element must move.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void interpolate(float *out, const float *from, const float *to, float weight, int64_t count) {
  const bool near_from = weight < 0.5F;
  const float factor = near_from ? weight : weight - 1.0F;
  for (int64_t i = 0; i < count; ++i) out[i] = canonical(std::fma(factor, to[i] - from[i], near_from ? from[i] : to[i]));
}

}  // namespace zero::kernels::reference
