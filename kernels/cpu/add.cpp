/// @file out = a + b in fp32, SIMD. 12 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void add(float *out, const float *a, const float *b, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = whole_steps<float>(count);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    prefetch(a + i);
    prefetch(b + i);
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes) {
      hn::StoreU(canonical(d, hn::Add(hn::LoadU(d, a + lane), hn::LoadU(d, b + lane))), d, out + lane);
    }
  }
  reference::add(out + whole, a + whole, b + whole, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
