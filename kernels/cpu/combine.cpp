/// @file values = fma(weight, addend, values * factor) in fp32, SIMD. 12 bytes per element must
/// move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void combine(float *values, float factor, const float *addend, float weight, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  const auto factors = hn::Set(d, factor);
  const auto weights = hn::Set(d, weight);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(values + i);
    prefetch(addend + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      const auto scaled = hn::Mul(hn::LoadU(d, values + lane), factors);
      hn::StoreU(canonical(d, hn::MulAdd(weights, hn::LoadU(d, addend + lane), scaled)), d, values + lane);
    }
  }
  reference::combine(values + whole, factor, addend + whole, weight, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
