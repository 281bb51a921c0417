/// @file CodedMean: the sum or mean of fp32 values over ranks that are far from one another, as
/// coded lines both ways. Knows ranks and kernels; never what the values are.
#pragma once

#include "core/partition.h"
#include "core/reduction.h"
#include "core/task.h"
#include "group/group.h"
#include "kernels/coded_lines.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The losses of earlier coding, which are added before values are coded again, and the addresses
/// that receive the new losses. Both may be the same memory.
struct CodingLoss {
  const float *sent = nullptr;  ///< one per value; nullptr: losses are dropped
  float *sent_next = nullptr;
  /// One per sum that this rank makes, in order, before it is divided.
  const float *result = nullptr;
  float *result_next = nullptr;
  /// One per value, which becomes 0 where a code brings the value, in whole or in part, to the
  /// others; nullptr: there are none.
  float *velocity = nullptr;
};

/// Each rank codes its values once. The owner of a part decodes those of all ranks, adds them in
/// the fixed tree, and codes the result once. All ranks, the owner too, use the decoded result, so
/// it has the same bits on all of them. One call at a time.
class CodedMean {
 public:
  /// Values that are worked on at once: about 5 MiB of memory.
  static constexpr int64_t kMostElements = int64_t{1} << 18;

  /// Bytes that open() takes, for values of at most `count` elements at a time.
  static int64_t nbytes(const kernels::Coder &coder, int64_t count, int64_t ranks);
  Status open(const kernels::Coder &coder, int64_t count, int64_t ranks, const MemorySource &source);
  void close() { memory_.release(); }
  /// The sums that a rank makes of `count` values: an even share of their lines.
  static Range results_of(int64_t count, int64_t rank, int64_t ranks);
  /// Most sums that one rank makes of `count` values.
  static int64_t most_results(int64_t count, int64_t ranks);
  bool codes() const { return memory_.data() != nullptr; }

  /// values = their sum over ranks / divisor. They begin on a line; `full`, by line: it travels in
  /// full. *finite is cleared where a result that this rank makes is not finite. A collective;
  /// `full` must be alike on all ranks and outlive the task.
  Task run(Group &group, float *values, int64_t count, std::span<const uint8_t> full, double divisor, bool *finite, CodingLoss loss = {});

 private:
  /// The values that one rank sums.
  struct Part {
    Range lines;
    std::span<const uint8_t> full;  ///< by line
    int64_t first = 0;              ///< value
    int64_t count = 0;              ///< values
    int64_t begin = 0;              ///< coded, behind the parts before it
    int64_t nbytes = 0;
  };

  void cut(int64_t count, std::span<const uint8_t> full, int64_t ranks, Range lines);
  void encode(const Part &part, const float *values, std::byte *to) const;
  void add_lost(const Part &part, const CodingLoss &loss, float *values) const;
  void keep_lost(const Part &part, const float *values, const std::byte *coded, float unit, float *out) const;
  void stop_sent(const Part &part, float *velocity) const;
  bool sum(const Part &mine, const Reducer &reducer, float *values, double divisor) const;
  void encode_result(const Part &mine, float *values, double divisor, const CodingLoss &loss);
  Task run_piece(Group &group, float *values, double divisor, bool *finite, const CodingLoss &loss);

  const kernels::Coder *coder_ = nullptr;
  Arena memory_;
  std::byte *sent_ = nullptr;      ///< this rank's values, by part
  std::byte *received_ = nullptr;  ///< this rank's part of all ranks
  std::byte *results_ = nullptr;   ///< coded results of all parts
  float *decoded_ = nullptr;       ///< this rank's part of all ranks
  std::vector<Part> parts_;        ///< a run of the results of each rank
};

}  // namespace zero
