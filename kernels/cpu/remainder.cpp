/// @file fp32 kept as a bf16 and the 16 bits that it lacks, SIMD: reference/remainder.cpp states the rule. 8 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<D>;
using Signed = hn::RebindToSigned<D>;
using Half = hn::Rebind<uint16_t, D>;
using SignedHalf = hn::Rebind<int16_t, D>;

/// `bits` below 2^16.
HWY_INLINE void store_half(hn::Vec<Bits> bits, uint16_t *out) {
  hn::StoreU(hn::DemoteTo(Half(), hn::BitCast(Signed(), bits)), Half(), out);
}

}  // namespace

void join(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<uint16_t>(count);
  for (int64_t i = 0; i < whole; i += kStep<uint16_t>) {
    prefetch(upper + i);
    prefetch(lower + i);
    for (int64_t lane = i; lane < i + kStep<uint16_t>; lane += lanes) {
      const auto high = hn::ShiftLeft<16>(hn::PromoteTo(Bits(), hn::LoadU(Half(), upper + lane)));
      const auto low = hn::PromoteTo(Signed(), hn::BitCast(SignedHalf(), hn::LoadU(Half(), lower + lane)));
      hn::StoreU(hn::BitCast(D(), hn::Add(high, hn::BitCast(Bits(), low))), D(), out + lane);
    }
  }
  reference::join(out + whole, upper + whole, lower + whole, count - whole);
}

void split(uint16_t *upper, uint16_t *lower, const float *values, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t whole = whole_steps<uint16_t>(count);
  for (int64_t i = 0; i < whole; i += lanes) {
    const auto bits = hn::BitCast(Bits(), canonical(D(), hn::LoadU(D(), values + i)));
    store_half(hn::ShiftRight<16>(hn::Add(bits, hn::Set(Bits(), 0x8000))), upper + i);
    store_half(hn::And(bits, hn::Set(Bits(), 0xffff)), lower + i);
  }
  reference::split(upper + whole, lower + whole, values + whole, count - whole);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
