/// @file Squares by line, plain: each line is summed in fp64. Element i is added to lane i % 8; its
/// square is exact in fp64. Lanes are added as ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). A short
/// last line is padded with zeros. Each element is read once.
#include "kernels/reference/add_squares-inl.h"
#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

#include <algorithm>

namespace zero::kernels::reference {

void add_squares(const void *values, DType dtype, int64_t count, ExactSum &sum) {
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t end = std::min(begin + kLine, count);
    double lane[kSquareLanes] = {};
    for (int64_t i = begin; i < end; ++i) {
      double &mine = lane[(i - begin) % kSquareLanes];
      mine = with_square(mine, element(values, dtype, i));
    }
    sum.add(sum_of_lanes(lane));
  }
}

}  // namespace zero::kernels::reference
