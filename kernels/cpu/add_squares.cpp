/// @file Squares by line, SIMD: each line is summed in fp64, in the order that
/// reference/add_squares.cpp states. Each element is read once.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

constexpr int64_t kLanes = 8;
using D = hn::CappedTag<double, kLanes>;
using V = hn::Vec<D>;
using Narrow = hn::Rebind<float, D>;
constexpr int64_t kWidth = hn::MaxLanes(D());
constexpr int64_t kVectors = kLanes / kWidth;

HWY_INLINE hn::Vec<Narrow> load(const float *values) { return hn::LoadU(Narrow(), values); }
HWY_INLINE hn::Vec<Narrow> load(const hwy::float16_t *values) {
  return hn::PromoteTo(Narrow(), hn::LoadU(hn::Rebind<hwy::float16_t, D>(), values));
}
HWY_INLINE hn::Vec<Narrow> load(const uint16_t *bf16) {
  const hn::Rebind<uint32_t, D> bits;
  return hn::BitCast(Narrow(), hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(hn::Rebind<uint16_t, D>(), bf16))));
}

template <typename Element>
HWY_INLINE double sum_of_line(const Element *values) {
  V sum[kVectors];
  for (V &vector : sum) vector = hn::Zero(D());
  for (int64_t i = 0; i < kLine; i += kStep<Element>) {
    prefetch(values + i);
    for (int64_t at = i; at < i + kStep<Element>; at += kLanes) {
      for (int64_t v = 0; v < kVectors; ++v) {
        const V value = hn::PromoteTo(D(), load(values + at + v * kWidth));
        sum[v] = hn::MulAdd(value, value, sum[v]);  // an exact square, so fusing changes nothing
      }
    }
  }
  double lane[kLanes];
  for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], D(), lane + v * kWidth);
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <typename Element>
void add_all(const void *values, DType dtype, int64_t count, ExactSum &sum) {
  const auto *elements = static_cast<const Element *>(values);
  const int64_t whole = count / kLine * kLine;
  for (int64_t i = 0; i < whole; i += kLine) sum.add(sum_of_line(elements + i));
  reference::add_squares(elements + whole, dtype, count - whole, sum);
}

}  // namespace

void add_squares(const void *values, DType dtype, int64_t count, ExactSum &sum) {
  switch (dtype) {
    case DType::f16:
      return add_all<hwy::float16_t>(values, dtype, count, sum);
    case DType::bf16:
      return add_all<uint16_t>(values, dtype, count, sum);
    default:
      return add_all<float>(values, dtype, count, sum);
  }
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
