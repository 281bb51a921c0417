/// @file Merging ranges.
#include "engine/gradients/ready_ranges.h"

#include <algorithm>

namespace zero {
namespace {

bool ends_before(Range range, int64_t element) { return range.end <= element; }

}  // namespace

bool ReadyRanges::overlaps(Range range) const {
  if (range.empty()) return false;
  const auto next = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_before);
  return next != ranges_.end() && next->begin < range.end;
}

bool ReadyRanges::covers(Range range) const {
  const auto next = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_before);
  return range.empty() || (next != ranges_.end() && next->begin <= range.begin && next->end >= range.end);
}

/// Ranges that it overlaps or touches become one with it.
void ReadyRanges::add(Range range) {
  if (range.empty()) return;
  const auto ends_apart = [](Range held, int64_t begin) { return held.end < begin; };
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_apart);
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
    count_ -= last->count();
  }
  count_ += range.count();
  if (first == last) {
    ranges_.insert(first, range);
  } else {
    *first = range;
    ranges_.erase(first + 1, last);
  }
}

}  // namespace zero
