/// @file Helpers for tests of matrix products: transposes, and the workspace of products.
#pragma once

#include "kernels/kernels.h"

#include <cstdint>
#include <vector>

namespace zero::kernels::test {

/// Transposes a row-major matrix; the result is row-major.
inline std::vector<float> transposed(const std::vector<float> &values, int64_t rows, int64_t columns) {
  std::vector<float> out(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
  }
  return out;
}

/// The workspace of the calling thread.
inline float *product_workspace() {
  thread_local std::vector<float> workspace(kProductWorkspace);
  return workspace.data();
}

}  // namespace zero::kernels::test
