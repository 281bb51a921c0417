/// @file StopRequest: the reason for which this rank asks to end the run. Any thread or signal
/// handler may raise it; the next step takes it. Knows no ranks and no steps.
#pragma once

#include <zero/status.h>

#include <atomic>
#include <cstdint>

namespace zero {

class StopRequest {
 public:
  /// Keeps the largest reason; each is above 0. Uses only atomic operations, so a signal handler
  /// may call it. Returns ZERO_OK, or ZERO_E_UNSUPPORTED after refuse().
  int32_t raise(int64_t reason) noexcept {
    if (refused_.load(std::memory_order_relaxed)) return ZERO_E_UNSUPPORTED;
    int64_t before = reason_.load(std::memory_order_relaxed);
    while (before < reason && !reason_.compare_exchange_weak(before, reason, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return ZERO_OK;
  }

  /// The largest reason that no step has reported; 0: none.
  int64_t pending() const noexcept { return reason_.load(std::memory_order_acquire); }

  /// Called when a step has reported `seen`. A larger reason that was raised meanwhile is left for
  /// the next step.
  void clear(int64_t seen) noexcept { reason_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel); }

  /// From now on raise() is refused, because steps cannot report a reason.
  void refuse() noexcept { refused_.store(true, std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<int64_t>::is_always_lock_free);

  std::atomic<int64_t> reason_{0};
  std::atomic<bool> refused_{false};
};

}  // namespace zero
