/// @file Streaming copies, SIMD: whole cache lines by non-temporal stores, which do not read the
/// lines that they overwrite. 2 bytes per byte must move, where plain stores move 3.
#include <hwy/cache_control.h>

#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {

void stream(void *out, const void *values, int64_t nbytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto *to = static_cast<uint8_t *>(out);
  const auto *from = static_cast<const uint8_t *>(values);
  const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kCacheLineNbytes);
  const int64_t until_line = past_line == 0 ? 0 : kCacheLineNbytes - past_line;
  const int64_t first = until_line < nbytes ? until_line : nbytes;
  const int64_t last = first + (nbytes - first) / kCacheLineNbytes * kCacheLineNbytes;
  reference::stream(to, from, first);
  for (int64_t i = first; i < last; i += kCacheLineNbytes) {
    prefetch(from + i);
    for (int64_t lane = i; lane < i + kCacheLineNbytes; lane += lanes) hn::Stream(hn::LoadU(d, from + lane), d, to + lane);
  }
  reference::stream(to + last, from + last, nbytes - last);
}

void flush() { hwy::FlushStream(); }

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
