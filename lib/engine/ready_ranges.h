/// @file ReadyRanges: which elements of one tensor have become ready in this step. Knows no memory.
#pragma once

#include "core/partition.h"

#include <cstdint>
#include <vector>

namespace zero {

class ReadyRanges {
 public:
  /// True when an element of the range was ready before.
  bool overlaps(Range range) const;
  /// Takes in a range that does not overlap. An empty range changes nothing.
  void add(Range range);
  int64_t count() const { return count_; }
  void clear() {
    ranges_.clear();
    count_ = 0;
  }

  /// Calls function(range) for each range of [0, whole) that is not ready.
  template <class Function>
  void for_each_missing(int64_t whole, Function &&function) const {
    int64_t at = 0;
    for (const Range &range : ranges_) {
      if (range.begin > at) function(Range{at, range.begin});
      at = range.end;
    }
    if (whole > at) function(Range{at, whole});
  }

 private:
  std::vector<Range> ranges_;  ///< sorted, apart from one another; keeps its memory over steps
  int64_t count_ = 0;
};

}  // namespace zero
