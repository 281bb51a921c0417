/// @file Range check, plain: looks for NaN and for magnitudes above a limit, also while it copies.
/// Each element is read once, and written once if it is copied.
#include "kernels/reference/elementwise-inl.h"
#include "kernels/target.h"

#include <cstddef>
#include <cstring>

namespace zero::kernels::reference {

bool all_within(const void *values, DType dtype, int64_t count, float limit) {
  bool within = true;
  for (int64_t i = 0; i < count && within; ++i) within = is_within(element(values, dtype, i), limit);
  return within;
}

bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, bool) {
  if (count > 0) std::memcpy(out, values, static_cast<size_t>(count) * (dtype == DType::f32 ? sizeof(float) : sizeof(uint16_t)));
  return all_within(values, dtype, count, limit);
}

}  // namespace zero::kernels::reference
