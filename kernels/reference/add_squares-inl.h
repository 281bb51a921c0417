/// @file Squares by line: the lane of each element, and the order in which lanes are added.
#pragma once

#include "kernels/reference/element.h"

namespace zero::kernels::reference {

/// Element i of a line goes to lane i % kSquareLanes.
inline constexpr int kSquareLanes = 8;

/// The square of an fp32 value is exact in fp64.
ZERO_ELEMENT double with_square(double lane, float value) { return lane + double{value} * double{value}; }

ZERO_ELEMENT double sum_of_lanes(const double *lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

}  // namespace zero::kernels::reference
