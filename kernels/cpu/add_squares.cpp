/// @file Squares of each line in fp64, SIMD: reference/add_squares.cpp states the order. 4 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

constexpr int64_t kLanes = 8;
using D = hn::CappedTag<double, kLanes>;
using V = hn::Vec<D>;

HWY_INLINE V add_square(V sum, const float *values) {
  const D d;
  const V value = hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), values));
  return hn::MulAdd(value, value, sum);  // the square is exact, so that fusing changes nothing
}

HWY_INLINE double sum_of_line(const float *values) {
  const D d;
  constexpr int64_t kWidth = hn::MaxLanes(d);
  constexpr int64_t kVectors = kLanes / kWidth;
  V sum[kVectors];
  for (V &vector : sum) vector = hn::Zero(d);
  for (int64_t i = 0; i < kLine; i += kStep<float>) {
    prefetch(values + i);
    for (int64_t at = i; at < i + kStep<float>; at += kLanes) {
      for (int64_t v = 0; v < kVectors; ++v) sum[v] = add_square(sum[v], values + at + v * kWidth);
    }
  }
  double lane[kLanes];
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, lane + v * kWidth);
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

}  // namespace

void add_squares(const float *values, int64_t count, ExactSum &sum) {
  const int64_t whole = count / kLine * kLine;
  for (int64_t i = 0; i < whole; i += kLine) sum.add(sum_of_line(values + i));
  reference::add_squares(values + whole, count - whole, sum);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
