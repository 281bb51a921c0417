/// @file Monotonic time and deadlines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace zero {

/// Nanoseconds of the monotonic clock.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A point in monotonic time after which waiting is an error.
class Deadline {
 public:
  static Deadline after_ms(int64_t milliseconds) { return Deadline(now_ns() + milliseconds * 1'000'000); }
  bool passed() const { return now_ns() >= at_ns_; }
  /// At least 1, so that a wait with this timeout looks once.
  int64_t left_ms() const { return std::max<int64_t>(1, (at_ns_ - now_ns()) / 1'000'000); }

 private:
  explicit Deadline(int64_t at_ns) : at_ns_(at_ns) {}
  int64_t at_ns_;
};

}  // namespace zero
