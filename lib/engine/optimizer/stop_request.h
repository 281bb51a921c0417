/// @file StopRequest: the reason for which this rank asks that the run ends, raised by any thread or signal handler, taken by the next step.
/// Knows no ranks and no steps.
#pragma once

#include <zero/status.h>

#include <atomic>
#include <cstdint>

namespace zero {

class StopRequest {
 public:
  /// Keeps the largest reason, each above 0. Atomic operations alone, which a signal handler may do. Returns ZERO_OK, or
  /// ZERO_E_UNSUPPORTED once refuse() was called.
  int32_t raise(int64_t reason) noexcept {
    if (refused_.load(std::memory_order_relaxed)) return ZERO_E_UNSUPPORTED;
    int64_t before = reason_.load(std::memory_order_relaxed);
    while (before < reason && !reason_.compare_exchange_weak(before, reason, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return ZERO_OK;
  }

  /// The largest reason that no step has reported; 0: none.
  int64_t pending() const noexcept { return reason_.load(std::memory_order_acquire); }

  /// A step has reported `seen`, which was pending. A larger reason that came meanwhile is the next step's.
  void clear(int64_t seen) noexcept { reason_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel); }

  /// From now on steps run that nobody could report a reason in.
  void refuse() noexcept { refused_.store(true, std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<int64_t>::is_always_lock_free);

  std::atomic<int64_t> reason_{0};
  std::atomic<bool> refused_{false};
};

}  // namespace zero
