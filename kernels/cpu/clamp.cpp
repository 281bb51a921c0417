/// @file Limits values to [-limit, limit], SIMD. 8 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void clamp(float *out, const float *values, int64_t count, float limit) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  const auto high = hn::Set(d, limit);
  const auto low = hn::Neg(high);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(values + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      const auto value = hn::LoadU(d, values + lane);
      const auto limited = hn::IfThenElse(hn::Gt(value, high), high, hn::IfThenElse(hn::Lt(value, low), low, value));
      hn::StoreU(canonical(d, limited), d, out + lane);
    }
  }
  reference::clamp(out + whole, values + whole, count - whole, limit);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
