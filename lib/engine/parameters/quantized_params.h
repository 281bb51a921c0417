/// @file QuantizedParams: parameters that are stored as 8-bit codes with a scale per line. Encodes
/// them from masters or values, and decodes them for the caller. Knows the places of codes; never
/// the time of their changes.
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
  /// All arguments must outlive this object.
  QuantizedParams(const Params &params, const Layout &layout, const TensorSlots &tensors, const Kernels &kernels)
      : params_(params), layout_(layout), tensors_(tensors), kernels_(kernels) {}

  static int64_t scales_nbytes(int64_t count) { return round_up(count, kLine) / kLine * dtype_nbytes(DType::f32); }
  /// Bytes of a whole tensor: codes, rounded up to a line, and scales.
  static int64_t codes_nbytes(int64_t count) { return round_up(count, kLine) + scales_nbytes(count); }

  /// Call it once slots have memory; `source` is that of slots.
  Status open(const MemorySource &source);
  void release() { gathered_.release(); }

  /// `may_skip` as in Kernels::encode.
  void encode(int64_t id, Range range, const void *values, DType dtype, bool may_skip = false) const {
    kernels_.encode(tensors_.codes_at(id, range.begin), values, dtype, range.count(), may_skip);
  }
  /// As Kernels::agree, for parameters that have masters.
  void agree(int64_t id, Range range, Lead lead) const;
  /// Encodes this rank's updated part of each parameter that trains.
  void encode_masters(bool may_skip) const;
  /// Decodes a whole tensor. A collective over `group` if the tensor is sharded; one call at a
  /// time.
  Task decode(Group &group, int64_t id, std::byte *whole);

 private:
  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  const Kernels &kernels_;
  Arena gathered_;  ///< codes of a whole tensor of stage 3 during decode
};

}  // namespace zero
