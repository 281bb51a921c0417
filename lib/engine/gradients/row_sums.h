/// @file RowSums: sums over ranks of gradients that have few rows. Rows that no rank gave do not
/// travel. Knows rows of buckets and ranks; never the users of the sums.
#pragma once

#include "engine/gradients/reduce_strategy.h"
#include "engine/layout/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Elements that were not given are read as these.
inline constexpr int64_t kZerosNbytes = 4096;
alignas(kViewAlignment) inline constexpr std::array<std::byte, kZerosNbytes> kZeros{};

/// Used by one operation at a time. Packets of rows take memory that grows to the most of a step.
class RowSums final : public ReduceStrategy {
 public:
  explicit RowSums(const Plan &plan) : plan_(plan) {}

  Status open(const MemorySource &source) override;
  void close() override;

  /// With the bits of PlainSums; rows that are marked as empty are not read.
  Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) override;
  /// Rows of all sums of this step travel, all others become zero.
  Task gather(Group &group, int64_t bucket, const SlotPlace &place) override;
  void end_step(bool applied) override;

 private:
  /// The bytes of a packet that came from a rank and are not read yet: row after row, its number
  /// and those of its elements that the reader asked for.
  struct Packet {
    const std::byte *at = nullptr;
    const std::byte *end = nullptr;
  };

  Range rows_in(int64_t bucket, Range cut) const;
  Range part_of(int64_t bucket, int64_t row, Range cut) const;
  int64_t packed_nbytes(int64_t bucket, Range cut, RowMarks marks, int64_t first, int64_t element) const;
  std::byte *pack(int64_t bucket, Range cut, RowMarks marks, int64_t first, const std::byte *whole, int64_t element, std::byte *to) const;
  Status need(Arena &arena, int64_t nbytes) const;
  Task tell(Group &group, std::span<const int64_t> sent, uint64_t what);
  Task move(Group &group, std::span<const Offer> offers, uint64_t what);
  bool add_up(const Group &group, int64_t bucket, RowMarks given, const ReduceScatter &call);
  bool add_row(const Group &group, int64_t count, std::span<const std::byte *const> sources, std::span<const void *> at,
               const ReduceScatter &call, std::byte *to) const;
  static const std::byte *take(Packet &packet, int64_t row, int64_t nbytes);
  void scatter(int64_t bucket, Range cut, Packet packet, const SlotPlace &place) const;

  const Plan &plan_;
  MemorySource source_{};
  /// By bucket and row of this rank's cut: it has a sum of this step.
  std::vector<std::vector<uint8_t>> summed_;
  Arena sent_;
  Arena received_;
  std::vector<int64_t> arriving_;  ///< by rank: bytes of its packet
  std::vector<Packet> packets_;    ///< by rank
};

}  // namespace zero
