/// @file out = values * scale in fp32, SIMD. 8 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void scale(float *out, const float *values, int64_t count, float scale) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(values + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      hn::StoreU(canonical(d, hn::Mul(hn::LoadU(d, values + lane), factor)), d, out + lane);
    }
  }
  reference::scale(out + whole, values + whole, count - whole, scale);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
