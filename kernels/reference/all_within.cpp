/// @file Looks for NaN and for magnitudes above a limit, plain. 4 bytes per element must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

bool all_within(const float *values, int64_t count, float limit) {
  for (int64_t i = 0; i < count; ++i) {
    if (!is_within(values[i], limit)) return false;
  }
  return true;
}

}  // namespace zero::kernels::reference
