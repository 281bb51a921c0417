/// @file out = a + b in fp32, plain; NaN is stored as the one NaN 0x7fc00000. 12 bytes per element
/// must move.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void add(float *out, const float *a, const float *b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = added(a[i], b[i]);
}

}  // namespace zero::kernels::reference
