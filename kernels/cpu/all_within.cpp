/// @file Range check, SIMD: looks for NaN and for magnitudes above a limit, also while it copies.
/// Each element is read once, and written once if it is copied. Without the sign, the bits of
/// floats order as magnitudes do; infinity and NaN are above all others.
#include <hwy/cache_control.h>

#include "kernels/cpu/format-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// The bits of the largest magnitude of a dtype that is not above the limit.
template <typename Bits>
HWY_INLINE Bits largest_within(DType dtype, float limit) {
  const auto bits = __builtin_bit_cast(uint32_t, limit);
  if (dtype == DType::f32) return static_cast<Bits>(bits);
  if (dtype == DType::bf16) return static_cast<Bits>(bits >> 16);
  const auto nearest = F16::rounded(hn::Set(F16::D(), limit));
  const float value = hn::GetLane(hn::PromoteTo(F16::D(), hn::BitCast(F16::Narrow(), nearest)));
  return static_cast<Bits>(hn::GetLane(nearest) - (value > limit ? 1 : 0));
}

/// Elements [begin, end) in whole cache lines. kCopies: also copies them to `out`; `streams`
/// bypasses the caches.
template <bool kCopies, typename Bits>
bool look(Bits *out, const Bits *values, int64_t begin, int64_t end, Bits largest, bool streams) {
  const hn::ScalableTag<Bits> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto magnitude = hn::Set(d, static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1));
  auto most = hn::Zero(d);
  for (int64_t i = begin; i < end; i += kStep<Bits>) {
    prefetch(values + i);
    for (int64_t lane = i; lane < i + kStep<Bits>; lane += lanes) {
      const auto bits = hn::LoadU(d, values + lane);
      most = hn::Max(most, hn::And(bits, magnitude));
      if constexpr (kCopies) store(bits, d, out + lane, streams);
    }
  }
  const auto limit = hn::Set(d, largest);
  return hn::AllTrue(d, hn::Eq(hn::Max(most, limit), limit));
}

template <typename Bits>
bool look_at_all(const void *values, DType dtype, int64_t count, float limit) {
  const auto *bits = static_cast<const Bits *>(values);
  const int64_t whole = whole_steps<Bits>(count);
  return look<false>(static_cast<Bits *>(nullptr), bits, 0, whole, largest_within<Bits>(dtype, limit), false) &&
         reference::all_within(bits + whole, dtype, count - whole, limit);
}

template <typename Bits>
bool copy_all(void *out, const void *values, DType dtype, int64_t count, float limit, bool may_stream) {
  auto *to = static_cast<Bits *>(out);
  const auto *bits = static_cast<const Bits *>(values);
  const int64_t before = may_stream ? until_line<Bits>(out, count) : -1;
  const int64_t begin = before > 0 ? before : 0;
  const int64_t end = begin + whole_steps<Bits>(count - begin);
  bool within = reference::copy_within(to, bits, dtype, begin, limit, false);
  within &= look<true>(to, bits, begin, end, largest_within<Bits>(dtype, limit), before >= 0);
  within &= reference::copy_within(to + end, bits + end, dtype, count - end, limit, false);
  if (before >= 0) hwy::FlushStream();
  return within;
}

}  // namespace

bool all_within(const void *values, DType dtype, int64_t count, float limit) {
  return (dtype == DType::f32 ? look_at_all<uint32_t> : look_at_all<uint16_t>)(values, dtype, count, limit);
}

bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, bool streams) {
  return (dtype == DType::f32 ? copy_all<uint32_t> : copy_all<uint16_t>)(out, values, dtype, count, limit, streams);
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
