/// @file DifferenceGather: the strategy by which parameters that all ranks hold follow their
/// masters by coded differences, so that what coding loses is in the next difference. The scheme is
/// that of weight differences in Jia et al., "SDP4Bit", 2024.
#pragma once

#include "core/partition.h"
#include "core/task.h"
#include "engine/config/settings.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/value_gather.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"
#include "kernels/coded_lines.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// M are the fp32 masters, of which each rank holds its cuts, W the parameters, which have the same
/// bits on all ranks. Used by one thread at a time.
class DifferenceGather final : public GatherStrategy {
 public:
  /// All arguments must outlive the object. It may be used only if on() is true.
  DifferenceGather(ValueGather &values, const Params &params, const Layout &layout, const TensorSlots &tensors, const Settings &settings)
      : values_(values), params_(params), layout_(layout), tensors_(tensors), settings_(settings), code_(settings.gathers.code) {}

  bool on() const { return code_ != nullptr; }

  /// W <- W + D(C(M - W)) in all of a bucket, and W <- M in lines that travel in full.
  Task bucket(Group &group, int64_t index) override;
  Task tensor(Group &group, int64_t id, std::byte *whole) override { return values_.tensor(group, id, whole); }
  bool changes_own() const override { return true; }
  std::string text(int64_t ranks) const override;

  /// Checks that every trained parameter has a master that it can follow.
  Status check_formats() const override;
  int64_t workspace_nbytes() const override;
  Status open(const MemorySource &source) override;
  void close() override;

 private:
  /// Bytes that a rank with `ranks` in all sends in one gather of all buckets.
  int64_t sent_nbytes(int64_t ranks) const;
  const Plan &plan() const { return layout_.plan(); }
  const SlotPlace &param(int64_t bucket) const { return tensors_.memory().place(tensors_.memory().param(), bucket); }
  const float *masters(int64_t bucket, int64_t element) const;
  int64_t coded_nbytes(const std::vector<uint8_t> &full, Range cut) const;
  int64_t largest_nbytes() const;
  void subtract(int64_t bucket, Range piece) const;
  void encode(int64_t bucket, Range cut, std::byte *out) const;
  void add(int64_t bucket, Range cut, const std::byte *coded) const;

  ValueGather &values_;
  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Settings &settings_;
  const kernels::Coder *const code_;
  std::vector<std::vector<uint8_t>> full_lines_;  ///< by bucket: not 0 where a line travels in full
  Arena memory_;
  std::byte *coded_ = nullptr;    ///< a bucket, by rank
  float *differences_ = nullptr;  ///< one piece
  float *piece_ = nullptr;        ///< W of a piece
};

}  // namespace zero
