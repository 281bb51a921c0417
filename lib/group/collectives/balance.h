/// @file Balance: shares of work for ranks of unequal speed. Knows the measurements of ranks; never
/// the work.
#pragma once

#include "group/group.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The last work of a rank, and its duration. A rank has no measurement if either is 0.
struct Measured {
  int64_t items = 0;
  int64_t ns = 0;
};

inline constexpr int64_t kMostBalancedItems = int64_t{1} << 40;

/// By rank: multiples of `unit` with sum `total`, itself a multiple. Speeds and shares are compared
/// as integers, so that every rank gets the same result.
std::vector<int64_t> balanced_shares(std::span<const Measured> measured, int64_t total, int64_t unit);

/// *out: this rank's share. A collective.
Task balance(Group &group, Measured mine, int64_t total, int64_t unit, int64_t *out);

}  // namespace zero
