/// @file How much of large property tests runs: a seeded subset, or the stated counts.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace zero::test {

/// The stated counts are asked for.
inline bool full_tests() { return std::getenv("ZERO_TEST_FULL") != nullptr; }

/// Everything is slow, with sanitizers or counters: they look at paths, which repeat over dtypes and sizes.
inline bool few_tests() { return std::getenv("ZERO_TEST_FEW") != nullptr; }

/// Counts cases that differ little, so that slow builds run every n-th of them. Take an n that shares no factor with what cases repeat
/// over.
class Every {
 public:
  explicit Every(int64_t n) : n_(few_tests() ? n : 1) {}
  bool next() { return number_++ % n_ == 0; }

 private:
  int64_t n_;
  int64_t number_ = 0;
};

}  // namespace zero::test
