/// @file RowPackets: rows of buckets on their way between ranks. A packet has row after row: its
/// number, and those of its elements that the reader asked for. Knows rows and cuts; never the use
/// of the elements.
#pragma once

#include "core/task.h"
#include "engine/layout/plan.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/slot_memory.h"
#include "group/collectives.h"
#include "group/group.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Used by one operation at a time. Packets take memory that grows to the most of a step.
class RowPackets {
 public:
  explicit RowPackets(const Plan &plan) : plan_(plan) {}

  void open(const MemorySource &source);
  void close();

  /// @name Rows of a bucket
  /// Elements behind the last row, of less than a line, are one row more.
  /// @{
  Range rows_in(int64_t bucket, Range cut) const;
  Range part_of(int64_t bucket, int64_t row, Range cut) const;
  /// @}

  /// @name Collectives, which differ in `what` if ranks must not mistake one for another
  /// @{
  /// Sends every other rank the marked rows of its cut. `whole` begins with the bucket.
  Task scatter(Group &group, int64_t bucket, RowMarks marks, const std::byte *whole, int64_t element, uint64_t what);
  /// Sends the marked rows of this rank's cut to all other ranks.
  Task share(Group &group, int64_t bucket, RowMarks marks, const SlotPlace &place, uint64_t what);
  /// @}

  /// @name The packets that came
  /// @{
  /// The elements of a row if the rank's packet comes to it next, otherwise nullptr.
  const std::byte *take(int64_t rank, int64_t row, int64_t nbytes);
  /// Writes all rows that `rank` shared of its cut, and marks them if there are marks.
  void unpack(int64_t bucket, int64_t rank, const SlotPlace &place, std::span<uint8_t> marks = {});
  /// @}

 private:
  /// The bytes of a packet that are not read yet.
  struct Packet {
    const std::byte *at = nullptr;
    const std::byte *end = nullptr;
  };

  int64_t packed_nbytes(int64_t bucket, Range cut, RowMarks marks, int64_t element) const;
  std::byte *pack(int64_t bucket, Range cut, RowMarks marks, const std::byte *whole, int64_t element, std::byte *to) const;
  Status need(Arena &arena, int64_t nbytes) const;
  Task send(Group &group, std::vector<Offer> offers, OperationKind kind, int64_t element, uint64_t what);

  const Plan &plan_;
  MemorySource source_{};
  Arena sent_;
  Arena received_;
  std::vector<int64_t> arriving_;  ///< by rank: bytes of its packet
  std::vector<Packet> packets_;    ///< by rank
};

}  // namespace zero
