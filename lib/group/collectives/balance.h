/// @file Balance: the shares of work that ranks of unequal speed are given. Knows what ranks measured; never what the work is.
#pragma once

#include "group/group.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// What a rank made last, and the time that it took. Nothing was measured where either is 0.
struct Measured {
  int64_t items = 0;
  int64_t ns = 0;
};

inline constexpr int64_t kMostBalancedItems = int64_t{1} << 40;

/// By rank: multiples of `unit` that add up to `total`, itself a multiple. Speeds and shares are compared as integers, so that every rank
/// comes to the same.
std::vector<int64_t> balanced_shares(std::span<const Measured> measured, int64_t total, int64_t unit);

/// *out: this rank's share. A collective.
Task balance(Group &group, Measured mine, int64_t total, int64_t unit, int64_t *out);

}  // namespace zero
