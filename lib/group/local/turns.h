/// @file Turns: the order in which a rank awaits its peers. Pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace zero {

/// Indexes 0 .. size - 1, each once, from `first` on in steps near the golden section of `size`.
/// Peers that arrive one after another, in any order, are then seldom the next in turn. A rank that
/// waits for each peer in turn wakes about log(size) times.
class Turns {
 public:
  Turns(int64_t size, int64_t first) : size_(size), first_(first), step_(std::max<int64_t>(1, size * 618 / 1000)) {
    while (std::gcd(step_, size_) != 1) ++step_;
  }
  int64_t size() const { return size_; }
  int64_t operator[](int64_t turn) const { return (first_ + turn * step_) % size_; }

 private:
  int64_t size_;
  int64_t first_;
  int64_t step_;
};

}  // namespace zero
