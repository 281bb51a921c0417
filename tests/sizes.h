/// @file How much of large property tests runs: a seeded subset, or the stated counts.
#pragma once

#include <cstdlib>

namespace zero::test {

/// The stated counts are asked for.
inline bool full_tests() { return std::getenv("ZERO_TEST_FULL") != nullptr; }

/// Everything is slow, with sanitizers or counters: they look at paths, which repeat over dtypes and sizes.
inline bool few_tests() { return std::getenv("ZERO_TEST_FEW") != nullptr; }

}  // namespace zero::test
