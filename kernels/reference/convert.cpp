/// @file Conversions, plain: fp32 from and to 16-bit floats, rounded to nearest even, any NaN to
/// the one NaN of the format. 6 bytes per element must move.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void widen(float *out, const void *values, DType dtype, int64_t count) {
  const auto *bits = static_cast<const uint16_t *>(values);
  const auto convert = dtype == DType::f16 ? from_f16 : from_bf16;
  for (int64_t i = 0; i < count; ++i) out[i] = canonical(convert(bits[i]));
}

void narrow(void *out, DType dtype, const float *values, int64_t count) {
  auto *bits = static_cast<uint16_t *>(out);
  const auto convert = dtype == DType::f16 ? to_f16 : to_bf16;
  for (int64_t i = 0; i < count; ++i) bits[i] = convert(canonical(values[i]));
}

}  // namespace zero::kernels::reference
