/// @file Matrix product in fp32, plain: every element is a chain of fma over ascending k. NaN is
/// stored as the one NaN 0x7fc00000. 2 * rows * inner * columns operations.
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void multiply(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, float *) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum = std::fma(a[i * inner + k], b[k * columns + j], sum);
      out[i * columns + j] = canonical(sum);
    }
  }
}

void multiply_symmetric(float *out, const float *a, const float *b, int64_t side, int64_t inner, float *workspace) {
  multiply(out, a, b, side, inner, side, workspace);
}

}  // namespace zero::kernels::reference
