/// @file Squares of each line in fp64, plain: element i goes to lane i % 8 (the square of an fp32 value is exact in fp64), lanes are added
/// as ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). A short last line is a line with zeros at its end. 4 bytes per element must move.
#include "kernels/target.h"

#include <algorithm>

namespace zero::kernels::reference {

void add_squares(const float *values, int64_t count, ExactSum &sum) {
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t end = std::min(begin + kLine, count);
    double lane[8] = {};
    for (int64_t i = begin; i < end; ++i) {
      const double value = values[i];
      lane[(i - begin) % 8] += value * value;
    }
    sum.add(((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])));
  }
}

}  // namespace zero::kernels::reference
