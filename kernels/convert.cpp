/// @file Conversions by dtype. Knows formats, not what the elements are for.
#include "kernels/convert.h"

#include <cstring>

namespace zero::kernels {

void widen(const Table &table, float *out, const void *values, DType dtype, int64_t count) {
  if (dtype != DType::f32) return table.widen(out, values, dtype, count);
  if (count > 0) std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
}

void narrow(const Table &table, void *out, DType dtype, const float *values, int64_t count) {
  if (dtype != DType::f32) return table.narrow(out, dtype, values, count);
  table.scale(static_cast<float *>(out), values, count, 1);  // a copy but for NaN
}

}  // namespace zero::kernels
