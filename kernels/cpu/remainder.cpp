/// @file Remainders, SIMD: fp32 kept as a bf16 and the 16 bits that it lacks. 8 bytes per element
/// must move.
#include "kernels/cpu/simd_remainder-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;

}  // namespace

void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<uint16_t>(count);
  for (int64_t i = 0; i < whole; i += kStep<uint16_t>) {
    prefetch(upper + i);
    prefetch(lower + i);
    for (int64_t lane = i; lane < i + kStep<uint16_t>; lane += lanes) hn::StoreU(load_joined(upper + lane, lower + lane), D(), out + lane);
  }
  reference::join(out + whole, upper + whole, lower + whole, count - whole);
}

void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<uint16_t>(count);
  for (int64_t i = 0; i < whole; i += lanes) store_split(canonical(D(), hn::LoadU(D(), values + i)), upper + i, lower + i);
  reference::split(upper + whole, lower + whole, values + whole, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
