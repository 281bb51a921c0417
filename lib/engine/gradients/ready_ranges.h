/// @file ReadyRanges: which elements of one tensor have become ready, or hold something, in this
/// step. Knows no memory.
#pragma once

#include "core/partition.h"

#include <cstdint>
#include <vector>

namespace zero {

class ReadyRanges {
 public:
  /// True when an element of the range was ready before.
  bool overlaps(Range range) const;
  /// So that the next range that is taken in takes no memory. May throw std::bad_alloc.
  void make_room() {
    if (ranges_.size() == ranges_.capacity()) ranges_.reserve(2 * ranges_.size() + 4);
  }
  /// Takes in the elements of the range that it does not hold yet.
  void add(Range range);
  /// True when it holds all elements of the range.
  bool covers(Range range) const;
  int64_t count() const { return count_; }
  void clear() {
    ranges_.clear();
    count_ = 0;
  }

  /// Calls function(part, held) for the parts of a range, in order, that it holds or does not hold.
  template <class Function>
  void for_each_part(Range range, Function &&function) const {
    int64_t at = range.begin;
    for (const Range &held : ranges_) {
      const Range part = intersect(held, {at, range.end});
      if (part.empty()) continue;
      if (part.begin > at) function(Range{at, part.begin}, false);
      function(part, true);
      at = part.end;
    }
    if (range.end > at) function(Range{at, range.end}, false);
  }

  /// Calls function(range) for each range of [0, whole) that is not ready.
  template <class Function>
  void for_each_missing(int64_t whole, Function &&function) const {
    for_each_part({0, whole}, [&](Range part, bool held) {
      if (!held) function(part);
    });
  }

 private:
  std::vector<Range> ranges_;  ///< sorted, apart from one another; keeps its memory over steps
  int64_t count_ = 0;
};

}  // namespace zero
