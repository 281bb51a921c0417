/// @file The words of a vote, and their parts.
#include "engine/optimizer/step_flags.h"

#include <algorithm>

namespace zero {

void StepFlags::open(int64_t params) {
  mine_.assign(kShared + static_cast<size_t>(params), 0);
  sums_ = mine_;
}

/// If parameters have words, all words are summed.
std::span<const int64_t> StepFlags::words(bool with_norm) const {
  return std::span(mine_).first(mine_.size() > kShared ? mine_.size() : with_norm ? kShared : kFirstWords);
}

void StepFlags::pass_on() { std::copy_n(sums_.begin(), kShared, mine_.begin()); }

}  // namespace zero
