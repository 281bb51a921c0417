/// @file Counts bytes by category.
#include "memory/accounting.h"

namespace zero {

void Accounting::Counter::add(int64_t nbytes) {
  const int64_t after = now.fetch_add(nbytes, std::memory_order_relaxed) + nbytes;
  int64_t highest = peak.load(std::memory_order_relaxed);
  while (after > highest && !peak.compare_exchange_weak(highest, after, std::memory_order_relaxed)) {
  }
}

void Accounting::add(int32_t category, int64_t nbytes) {
  counters_[static_cast<size_t>(category)].add(nbytes);
  counters_[ZERO_MEMORY_TOTAL].add(nbytes);
}

}  // namespace zero
