/// @file Accounting: bytes by category, now and at peak. Knows the categories' numbers, not the
/// contents of the memory.
#pragma once

#include <zero/stats.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

/// The categories are those of zero_memory. The total has a counter of its own, so that its peak is
/// that of one moment. Callable from any thread.
class Accounting {
 public:
  static constexpr int32_t kCategories = ZERO_MEMORY_WORKSPACE + 1;
  static constexpr bool valid(int32_t category) { return category >= 0 && category < kCategories; }

  /// Counts memory that was allocated (positive) or freed (negative). `category` is not
  /// ZERO_MEMORY_TOTAL.
  void add(int32_t category, int64_t nbytes);
  int64_t now(int32_t category) const { return counter(category).now.load(std::memory_order_relaxed); }
  int64_t peak(int32_t category) const { return counter(category).peak.load(std::memory_order_relaxed); }

 private:
  struct Counter {
    std::atomic<int64_t> now{0};
    std::atomic<int64_t> peak{0};
    void add(int64_t nbytes);
  };
  const Counter &counter(int32_t category) const { return counters_[static_cast<size_t>(category)]; }

  std::array<Counter, kCategories> counters_;
};

}  // namespace zero
