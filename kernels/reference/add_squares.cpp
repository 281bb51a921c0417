/// @file Squares of each line in fp64, plain: element i goes to lane i % 8 (the square of an fp32 value is exact in fp64), lanes are added
/// as ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). A short last line is a line with zeros at its end. An element must be
/// read.
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
