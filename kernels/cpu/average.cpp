/// @file Moving average, SIMD: average = fma(weight, values - average, average). 12 bytes per
/// element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void average(float *average, const float *values, int64_t count, float weight) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  const auto factor = hn::Set(d, weight);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(average + i);
    prefetch(values + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      const auto before = hn::LoadU(d, average + lane);
      const auto after = hn::MulAdd(factor, hn::Sub(hn::LoadU(d, values + lane), before), before);
      hn::StoreU(canonical(d, after), d, average + lane);
    }
  }
  reference::average(average + whole, values + whole, count - whole, weight);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
