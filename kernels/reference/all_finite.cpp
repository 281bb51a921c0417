/// @file Looks for NaN and infinity, plain. 4 bytes per element must move.
#include "kernels/target.h"

#include <cmath>

namespace zero::kernels::reference {

bool all_finite(const float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

}  // namespace zero::kernels::reference
