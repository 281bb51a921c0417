/// @file Accounting: bytes by category, now and at peak. Knows the categories' numbers; never what lies in the memory.
#pragma once

#include <zero/stats.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

/// Categories are those of zero_memory; the total is kept with them, so that its peak is that of one moment. Any thread.
class Accounting {
 public:
  static constexpr int32_t kCategories = ZERO_MEMORY_WORKSPACE + 1;
  static constexpr bool valid(int32_t category) { return category >= 0 && category < kCategories; }

  /// Counts memory that came (positive) or went. `category` is not ZERO_MEMORY_TOTAL.
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
