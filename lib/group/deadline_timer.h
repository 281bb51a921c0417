/// @file DeadlineTimer: the time limit of a group's call, and the time at which it logs that it
/// waits.
#pragma once

#include "core/clock.h"

#include <algorithm>
#include <cstdint>

namespace zero {

/// The timer of one wait. It starts at construction.
class DeadlineTimer {
 public:
  enum class Look {
    waits_on,
    remarks,  ///< a tenth of the limit has passed; returned once
    ends,     ///< the limit has passed
  };

  explicit DeadlineTimer(int64_t limit_ms)
      : limit_ms_(limit_ms), ends_ns_(now_ns() + limit_ms * kNsPerMs), next_ns_(ends_ns_ - limit_ms * kNsPerMs / 10 * 9) {}

  int64_t limit_ms() const { return limit_ms_; }
  /// Returns at least 1, so that a wait with this limit looks once.
  int64_t left_ms() const { return std::max<int64_t>(1, (ends_ns_ - now_ns()) / kNsPerMs); }

  Look look() {
    const int64_t now = now_ns();
    if (now < next_ns_) return Look::waits_on;
    if (now >= ends_ns_) return Look::ends;
    next_ns_ = ends_ns_;
    return Look::remarks;
  }

 private:
  static constexpr int64_t kNsPerMs = 1'000'000;

  int64_t limit_ms_;
  int64_t ends_ns_;
  int64_t next_ns_;  ///< time of the next result other than waits_on
};

}  // namespace zero
