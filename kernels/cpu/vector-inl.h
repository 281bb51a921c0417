/// @file Vectors: Highway for the one target of this compilation, and functions that all SIMD files
/// share. Everything here is inlined or has internal linkage. Nothing of the standard library may
/// be instantiated, because its code would be shared with callers of other targets.
#pragma once

#include <hwy/highway.h>

#include "kernels/target.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Main loops advance by one cache line, so that one prefetch per array and iteration is enough;
/// the rest goes to the reference.
constexpr int64_t kCacheLineNbytes = 64;
/// The prefetch distance of loops whose narrowest array holds T. On Intel's Emerald Rapids 512
/// bytes to 4 KiB are equally good and 8 KiB is worse. On AMD's Zen 5, one thread gains up to a
/// tenth from 2 KiB instead of 1 KiB if there is a 16-bit slot. On Zen 4, loops over fp32 alone
/// lose 2 to 10 % by that.
template <typename T>
constexpr int64_t kPrefetchNbytes = sizeof(T) < sizeof(float) ? 2048 : 1024;

template <typename T>
constexpr int64_t kStep = kCacheLineNbytes / static_cast<int64_t>(sizeof(T));

template <typename T>
constexpr int64_t whole_steps(int64_t count) {
  return count / kStep<T> * kStep<T>;
}

/// Prefetches in a loop whose narrowest array holds Narrowest.
template <typename Narrowest, typename T>
HWY_INLINE void prefetch_beside(const T *address) {
  __builtin_prefetch(reinterpret_cast<const char *>(address) + kPrefetchNbytes<Narrowest>);
}

template <typename T>
HWY_INLINE void prefetch(const T *address) {
  prefetch_beside<T>(address);
}

/// Stores. `streams` bypasses the caches and needs an aligned address.
template <class D, class V, typename T>
HWY_INLINE void store(V value, D d, T *to, bool streams) {
  if (streams) {
    hn::Stream(value, d, to);
  } else {
    hn::StoreU(value, d, to);
  }
}

/// Elements before the first one of `to` that begins a cache line, at most `count`; -1 if none
/// does.
template <typename T>
HWY_INLINE int64_t until_line(const void *to, int64_t count) {
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kCacheLineNbytes);
  if (past % static_cast<int64_t>(sizeof(T)) != 0) return -1;
  const int64_t before = (past == 0 ? 0 : kCacheLineNbytes - past) / static_cast<int64_t>(sizeof(T));
  return before < count ? before : count;
}

/// NaN in any form becomes the one NaN that results carry.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V canonical(D d, V value) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  const V nan = hn::BitCast(d, hn::Set(du, sizeof(T) == 4 ? static_cast<hn::TFromD<decltype(du)>>(0x7fc00000)
                                                          : static_cast<hn::TFromD<decltype(du)>>(0x7ff8000000000000)));
  return hn::IfThenElse(hn::IsNaN(value), nan, value);
}

/// Records whether a value was NaN or infinite: x - x is +0 for all others.
template <class D>
class FiniteCheck {
 public:
  HWY_INLINE explicit FiniteCheck(D d) : seen_(hn::Zero(d)) {}
  HWY_INLINE void add(hn::Vec<D> value) { seen_ = hn::Or(seen_, hn::Sub(value, value)); }
  HWY_INLINE void add(const FiniteCheck &other) { seen_ = hn::Or(seen_, other.seen_); }
  HWY_INLINE bool passed(D d) const { return hn::AllTrue(d, hn::Eq(seen_, hn::Zero(d))); }

 private:
  hn::Vec<D> seen_;
};

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
