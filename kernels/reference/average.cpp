/// @file Moving average, plain: average = fma(weight, values - average, average); NaN is stored as the one NaN 0x7fc00000. 12 bytes per
/// element must move.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void average(float *average, const float *values, int64_t count, float weight) {
  for (int64_t i = 0; i < count; ++i) average[i] = canonical(std::fma(weight, values[i] - average[i], average[i]));
}

}  // namespace zero::kernels::reference
