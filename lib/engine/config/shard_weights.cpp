/// @file Parses shard weights.
#include "engine/config/shard_weights.h"

#include "core/number_text.h"

#include <charconv>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kLargestSum = int64_t{1} << 31;

}  // namespace

Status parse_shard_weights(const std::string &text, int64_t size, std::vector<int64_t> *out, const char *sharers) {
  std::vector<int64_t> weights;
  if (text.empty()) weights.assign(static_cast<size_t>(size), 1);
  const char *at = text.data();
  const char *end = at + text.size();
  int64_t sum = static_cast<int64_t>(weights.size());
  while (at != end) {
    int64_t weight = 0;
    const auto [next, error] = std::from_chars(at, end, weight);
    ZERO_CHECK(error == std::errc() && (next == end || (*next == ',' && next + 1 != end)) && weight >= 0, ZERO_E_INVALID_ARGUMENT,
               "ZERO_KEY_SHARD_WEIGHTS is \"%s\", but must be one non-negative integer per rank, separated by commas", text.c_str());
    ZERO_CHECK(weight <= kLargestSum - sum, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SHARD_WEIGHTS is \"%s\", whose sum is above %s",
               text.c_str(), bound_text(kLargestSum).c_str());
    weights.push_back(weight);
    sum += weight;
    at = next == end ? end : next + 1;
  }
  ZERO_CHECK(static_cast<int64_t>(weights.size()) == size, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SHARD_WEIGHTS is \"%s\" with %s, but %s has %s", text.c_str(),
             count_text(static_cast<int64_t>(weights.size()), "weight").c_str(), sharers, count_text(size, "rank").c_str());
  ZERO_CHECK(sum > 0, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SHARD_WEIGHTS is \"%s\", but some rank must have a weight above 0", text.c_str());
  *out = std::move(weights);
  return {};
}

}  // namespace zero
