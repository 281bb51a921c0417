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

/// Added back to front one by one: adding changes what is walked over.
void ReadyRanges::add_missing(Range range) {
  while (!covers(range)) {
    Range missing{};
    for_each_part(range, [&](Range part, bool held) {
      if (!held) missing = part;
    });
    add(missing);
  }
}

void ReadyRanges::add(Range range) {
  if (range.empty()) return;
  const auto next = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_before);
  const bool joins_next = next != ranges_.end() && next->begin == range.end;
  const bool joins_previous = next != ranges_.begin() && (next - 1)->end == range.begin;
  if (joins_previous && joins_next) {
    (next - 1)->end = next->end;
    ranges_.erase(next);
  } else if (joins_previous) {
    (next - 1)->end = range.end;
  } else if (joins_next) {
    next->begin = range.begin;
  } else {
    ranges_.insert(next, range);
  }
  count_ += range.count();
}

}  // namespace zero
