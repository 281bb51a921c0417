/// @file Monotonic time and deadlines.
#pragma once

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

 private:
  explicit Deadline(int64_t at_ns) : at_ns_(at_ns) {}
  int64_t at_ns_;
};

}  // namespace zero
