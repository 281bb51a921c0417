/// @file RowSums: sums over ranks of gradients that have few rows. Rows that no rank gave do not
/// travel. Knows rows of buckets and ranks; never the users of the sums.
#pragma once

#include "engine/gradients/reduce_strategy.h"
#include "engine/layout/plan.h"
#include "engine/storage/row_packets.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace zero {

/// Elements that were not given are read as these.
inline constexpr int64_t kZerosNbytes = 4096;
alignas(kViewAlignment) inline constexpr std::array<std::byte, kZerosNbytes> kZeros{};

/// Used by one operation at a time.
class RowSums final : public ReduceStrategy {
 public:
  /// `rows` get marks of all rows that have a sum.
  RowSums(const Plan &plan, GivenRows &rows) : plan_(plan), rows_(rows), packets_(plan) {}

  Status open(const MemorySource &source) override;
  void close() override { packets_.close(); }

  /// With the bits of PlainSums; rows that are marked as empty are not read.
  Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) override;
  /// Rows of all sums of this step travel, all others become zero.
  Task gather(Group &group, int64_t bucket, const SlotPlace &place) override;
  void end_step(bool /*applied*/) override { rows_.end_step(); }

 private:
  bool add_up(const Group &group, int64_t bucket, RowMarks given, const ReduceScatter &call);
  bool add_row(const Group &group, int64_t count, std::span<const std::byte *const> sources, std::span<const void *> at,
               const ReduceScatter &call, std::byte *to) const;

  const Plan &plan_;
  GivenRows &rows_;
  RowPackets packets_;
};

}  // namespace zero
