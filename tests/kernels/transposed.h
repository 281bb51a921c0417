/// @file The transpose of a matrix, for tests of products.
#pragma once

#include <cstdint>
#include <vector>

namespace zero::kernels::test {

/// Row-major, as `values` is.
inline std::vector<float> transposed(const std::vector<float> &values, int64_t rows, int64_t columns) {
  std::vector<float> out(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
  }
  return out;
}

}  // namespace zero::kernels::test
