/// @file Looks for NaN and for magnitudes above a limit, SIMD. 4 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

bool all_within(const float *values, int64_t count, float limit) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto most = hn::Set(d, limit);
  const int64_t block = 2 * kStep<float>;
  const int64_t whole = count / block * block;
  // Two chains hide the latency of one. NaN is within nothing.
  auto within = hn::Eq(most, most);
  auto within_next = within;
  for (int64_t i = 0; i < whole; i += block) {
    prefetch(values + i);
    prefetch(values + i + kStep<float>);
    for (int64_t lane = 0; lane < block; lane += 2 * lanes) {
      within = hn::And(within, hn::Le(hn::Abs(hn::LoadU(d, values + i + lane)), most));
      within_next = hn::And(within_next, hn::Le(hn::Abs(hn::LoadU(d, values + i + lane + lanes)), most));
    }
  }
  return hn::AllTrue(d, hn::And(within, within_next)) && reference::all_within(values + whole, count - whole, limit);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
