/// @file fp32 to 16-bit floats with stochastic rounding, plain: random.h states the rule. 10 bytes
/// per element must move, 8 to bf16.
#include "kernels/reference/float_bits.h"
#include "kernels/reference/random_words-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void narrow_stochastic(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random) {
  auto *bits = static_cast<uint16_t *>(out);
  for (int64_t i = 0; i < count; ++i) {
    const float value = canonical(values[i]);
    bits[i] = dtype == DType::f16 ? to_f16_stochastic(value, random[i]) : to_bf16_stochastic(value, random_half(random, i));
  }
}

}  // namespace zero::kernels::reference
