/// @file Looks for NaN and infinity, SIMD. 4 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

bool all_finite(const float *values, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t block = 2 * kStep<float>;
  const int64_t whole = count / block * block;
  FiniteCheck check(d);
  FiniteCheck check_next(d);  // two chains hide the latency of one
  for (int64_t i = 0; i < whole; i += block) {
    prefetch(values + i);
    prefetch(values + i + kStep<float>);
    for (int64_t lane = 0; lane < block; lane += 2 * lanes) {
      check.add(hn::LoadU(d, values + i + lane));
      check_next.add(hn::LoadU(d, values + i + lane + lanes));
    }
  }
  check.add(check_next);
  return check.passed(d) && reference::all_finite(values + whole, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
