/// @file Shard weights: converts the text of ZERO_KEY_SHARD_WEIGHTS to the sizes that the partition
/// uses. Knows no ranks and no tensors.
#pragma once

#include "core/partition.h"
#include "core/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// One weight per rank; "" means equal weights.
Status parse_shard_weights(const std::string &text, int64_t size, std::vector<int64_t> *out, const char *sharers = "the group");

}  // namespace zero
