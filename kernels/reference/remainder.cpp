/// @file Remainders, plain: fp32 kept as a bf16 and the 16 bits that it lacks. remainder-inl.h
/// states the rule. 8 bytes per element must move.
#include "kernels/reference/remainder-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = joined(upper[i], lower[i]);
}

void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Halves halves = halves_of(values[i]);
    upper[i] = halves.upper;
    lower[i] = halves.lower;
  }
}

}  // namespace zero::kernels::reference
