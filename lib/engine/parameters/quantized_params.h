/// @file Coded params: parameters that are stored as 8-bit codes with a scale per line: made from masters or from values, decoded for the
/// caller. Knows where codes lie; never when they change.
#pragma once

#include "core/task.h"
#include "engine/compute/step_kernels.h"
#include "engine/layout/params.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class QuantizedParams {
 public:
  /// What is given must outlive it.
  QuantizedParams(const Params &params, const Layout &layout, const TensorSlots &tensors, const Kernels &kernels)
      : params_(params), layout_(layout), tensors_(tensors), kernels_(kernels) {}

  static int64_t scales_nbytes(int64_t count) { return round_up(count, kLine) / kLine * dtype_nbytes(DType::f32); }
  /// Of a whole tensor: codes, up to a line, and scales.
  static int64_t codes_nbytes(int64_t count) { return round_up(count, kLine) + scales_nbytes(count); }

  /// Once slots have memory; `source` is that of slots.
  Status open(const MemorySource &source);
  void release() { gathered_.release(); }

  /// `may_skip` as in Kernels::encode.
  void encode(int64_t id, Range range, const void *values, DType dtype, bool may_skip = false) const {
    kernels_.encode(tensors_.codes_at(id, range.begin), values, dtype, range.count(), may_skip);
  }
  /// As in Kernels::agree, of parameters that have masters.
  void agree(int64_t id, Range range, Lead lead) const;
  /// What this rank updates of all parameters that train.
  void encode_masters(bool may_skip) const;
  /// A whole tensor. A collective over `group` where it is sharded; one at a time.
  Task decode(Group &group, int64_t id, std::byte *whole);

 private:
  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Kernels &kernels_;
  Arena gathered_;  ///< codes of a whole tensor of stage 3 while they are decoded
};

}  // namespace zero
