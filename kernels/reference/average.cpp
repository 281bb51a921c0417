/// @file Moving average, plain: average = fma(weight, values - average, average); NaN is stored as
/// the one NaN 0x7fc00000. 12 bytes per element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void average(float *average, const float *values, int64_t count, float weight) {
  for (int64_t i = 0; i < count; ++i) average[i] = averaged(average[i], values[i], weight);
}

}  // namespace zero::kernels::reference
