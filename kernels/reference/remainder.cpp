/// @file fp32 kept as a bf16 and the 16 bits that it lacks, plain. 8 bytes per element must move.
///
///   M = the bits of the fp32 value (NaN in its one form), upper = (M + 2^15) >> 16, lower = M mod 2^16, all modulo 2^32
///   back: M = upper * 2^16 + lower as a signed number
///
/// Every M comes back: M - upper * 2^16 lies in [-2^15, 2^15) and lower is that number modulo 2^16. `upper` is the value rounded to the
/// nearest bf16, ties away from zero: with ties to even both neighbours of a tie could have the same upper and lower half.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto difference = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(lower[i])));
    out[i] = std::bit_cast<float>((static_cast<uint32_t>(upper[i]) << 16) + difference);
  }
}

void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(canonical(values[i]));
    upper[i] = static_cast<uint16_t>((bits + 0x8000) >> 16);
    lower[i] = static_cast<uint16_t>(bits);
  }
}

}  // namespace zero::kernels::reference
