/// @file Counting, and setting all counts.
#include "engine/storage/update_counts.h"

namespace zero {

void UpdateCounts::open(int64_t *counts, int64_t size, int64_t first) {
  counts_ = counts;
  size_ = size;
  set_to_.reset();
  if (first != 0) set_all(first);
}

void UpdateCounts::tell() {
  if (!set_to_.has_value()) return;
  kernels_.set_counts(counts_, size_, *set_to_);
  set_to_.reset();
}

void UpdateCounts::count(std::span<const int64_t> filled) const {
  if (kept()) kernels_.count_updates(counts_, filled);
}

}  // namespace zero
