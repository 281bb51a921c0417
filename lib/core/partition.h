/// @file Partition maths: the owner of each element. Pure integer arithmetic, the same on every
/// rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Half-open range of elements.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t count() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  friend constexpr bool operator==(const Range &, const Range &) = default;
};

constexpr Range intersect(Range a, Range b) {
  const int64_t begin = a.begin > b.begin ? a.begin : b.begin;
  const int64_t end = a.end < b.end ? a.end : b.end;
  return {begin, end > begin ? end : begin};
}

/// Tensors of this many elements or more start at a multiple of it. Smaller tensors never cross a
/// multiple, and shards are cut at one.
inline constexpr int64_t kLine = 256;

/// Every tensor starts at a multiple of this many elements, so that tensors of 16 bits per element
/// are aligned to 64 bytes.
inline constexpr int64_t kTensorStart = 32;

constexpr int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

__extension__ typedef __int128 Int128;

/// value * numerator / denominator without overflow for non-negative values whose result fits.
constexpr int64_t scale_floor(int64_t value, int64_t numerator, int64_t denominator) {
  return static_cast<int64_t>(static_cast<Int128>(value) * numerator / denominator);
}

/// A rank's part of `count` elements in collectives that split a whole: [rank * count / size, (rank
/// + 1) * count / size).
constexpr Range even_share(int64_t count, int64_t rank, int64_t size) {
  return {scale_floor(count, rank, size), scale_floor(count, rank + 1, size)};
}

/// Relative shard sizes of the ranks of a group.
class Weights {
 public:
  /// Weights of no ranks.
  Weights() = default;
  /// Equal shards over `size` ranks.
  explicit Weights(int64_t size);
  /// One non-negative weight per rank, with a sum between 1 and 2^31.
  explicit Weights(std::span<const int64_t> weights);

  int64_t size() const { return static_cast<int64_t>(prefix_.size()) - 1; }
  int64_t weight(int64_t rank) const { return prefix_[static_cast<size_t>(rank) + 1] - prefix_[static_cast<size_t>(rank)]; }

  /// A rank's shard of a range that begins on a line: whole lines in proportion to the weights.
  /// Only the last shard that is not empty may end within a line. The shards of all ranks are
  /// adjacent and cover the range.
  Range shard(Range whole, int64_t rank) const;

 private:
  std::vector<int64_t> prefix_ = {0};
};

/// The places of tensors in the flat space, by the rules of kLine and kTensorStart, in order of
/// registration.
class FlatLayout {
 public:
  /// Appends a tensor and returns its first element in the flat space.
  int64_t append(int64_t count);
  /// The same, but a tensor of any size starts on a line of its own.
  int64_t append_line(int64_t count);
  /// Elements of the flat space, gaps included.
  int64_t extent() const { return extent_; }

 private:
  int64_t extent_ = 0;
};

}  // namespace zero
