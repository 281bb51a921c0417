/// @file The measured times of one thing. Knows nothing of what was measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace zero::bench {

class Samples {
 public:
  void add(double seconds) { seconds_.push_back(seconds); }
  size_t size() const { return seconds_.size(); }
  double operator[](size_t index) const { return seconds_[index]; }

  /// 0 without samples, as the two below.
  double median() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
  double least() const { return seconds_.empty() ? 0 : *std::min_element(seconds_.begin(), seconds_.end()); }
  double most() const { return seconds_.empty() ? 0 : *std::max_element(seconds_.begin(), seconds_.end()); }

 private:
  std::vector<double> seconds_;
};

}  // namespace zero::bench
