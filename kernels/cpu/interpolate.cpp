/// @file Interpolation, SIMD: reference/interpolate.cpp states the formula. 12 bytes per element
/// must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void interpolate(float *out, const float *from, const float *to, float weight, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  const bool near_from = weight < 0.5F;
  const auto factor = hn::Set(d, near_from ? weight : weight - 1.0F);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(from + i);
    prefetch(to + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      const auto begin = hn::LoadU(d, from + lane);
      const auto end = hn::LoadU(d, to + lane);
      hn::StoreU(canonical(d, hn::MulAdd(factor, hn::Sub(end, begin), near_from ? begin : end)), d, out + lane);
    }
  }
  reference::interpolate(out + whole, from + whole, to + whole, weight, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
