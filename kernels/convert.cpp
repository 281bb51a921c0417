/// @file Conversions by dtype. Knows formats, not the use of elements.
#include "kernels/convert.h"

#include <cstring>

namespace zero::kernels {

void widen(const Table &table, float *out, const void *values, DType dtype, int64_t count) {
  if (dtype != DType::f32) return table.widen(out, values, dtype, count);
  if (count > 0) std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
}

void narrow(const Table &table, void *out, DType dtype, const float *values, int64_t count) {
  if (dtype != DType::f32) return table.narrow(out, dtype, values, count);
  table.scale(static_cast<float *>(out), values, count, 1);  // copies, but NaN gets its one form
}

void make_random(const Table &table, uint32_t *out, DType dtype, int64_t count, const RandomKey &key, uint64_t first) {
  if (dtype != DType::bf16) return table.random_words(out, count, key, first);
  table.random_words(out, (count + 1) / 2, key, first / 2);
}

}  // namespace zero::kernels
