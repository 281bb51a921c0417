/// @file Partition: bounds of shards, and the layout of the flat space.
#include "core/partition.h"

#include <algorithm>

namespace zero {

Weights::Weights(int64_t size) : prefix_(static_cast<size_t>(size) + 1) {
  for (int64_t rank = 0; rank <= size; ++rank) prefix_[static_cast<size_t>(rank)] = rank;
}

Weights::Weights(std::span<const int64_t> weights) : prefix_(weights.size() + 1) {
  for (size_t rank = 0; rank < weights.size(); ++rank) prefix_[rank + 1] = prefix_[rank] + weights[rank];
}

Range Weights::shard(Range whole, int64_t rank) const {
  const int64_t lines = (whole.count() + kLine - 1) / kLine;
  const int64_t total = prefix_.back();
  const auto cut = [&](int64_t at) {
    const int64_t line = scale_floor(lines, prefix_[static_cast<size_t>(at)], total);
    return std::min(whole.begin + line * kLine, whole.end);
  };
  return {cut(rank), cut(rank + 1)};
}

int64_t FlatLayout::append(int64_t count) {
  const int64_t next = round_up(extent_, kTensorStart);
  const int64_t line_end = round_up(next, kLine);
  const bool crosses = count >= kLine || next + count > line_end;
  const int64_t begin = crosses ? line_end : next;
  extent_ = begin + count;
  return begin;
}

int64_t FlatLayout::append_line(int64_t count) {
  const int64_t begin = round_up(extent_, kLine);
  extent_ = begin + count;
  return begin;
}

}  // namespace zero
