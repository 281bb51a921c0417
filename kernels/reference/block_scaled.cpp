/// @file Block-scaled floats, plain: block_scaled.h states format and rounding. 5 bytes per element
/// must move, 9 with random numbers.
#include "kernels/reference/block_scaled-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void encode(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random) {
  const Format8 format = format8(dtype);
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t end = std::min(begin + kLine, count);
    float absmax = 0;
    for (int64_t i = begin; i < end; ++i) absmax = std::max(absmax, finite_magnitude(values[i]));
    const float scale = scale_of(absmax, format);
    const float inverse = inverse_of(scale);
    scales[begin / kLine] = scale;
    for (int64_t i = begin; i < end; ++i) codes[i] = encoded(values[i], inverse, format, random != nullptr ? random + i : nullptr);
  }
}

void decode(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count) {
  const Format8 format = format8(dtype);
  for (int64_t i = 0; i < count; ++i) out[i] = decoded(codes[i], scales[i / kLine], format);
}

}  // namespace zero::kernels::reference
