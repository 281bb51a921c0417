/// @file ValueGather: the strategy by which parameters travel as they are kept: values, or 8-bit
/// codes and their scales. A bucket of stage 3 goes to the ranks that keep copies of its cuts
/// (Plan::twin()), as in hpZ: Wang et al., "ZeRO++", 2023.
#pragma once

#include "engine/layout/layout.h"
#include "engine/parameters/gather_strategy.h"
#include "engine/parameters/quantized_params.h"
#include "engine/storage/tensor_slots.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zero {

class ValueGather final : public GatherStrategy {
 public:
  /// All arguments must outlive the object.
  ValueGather(const Layout &layout, const TensorSlots &tensors, QuantizedParams &quantized_params)
      : layout_(layout), tensors_(tensors), quantized_params_(quantized_params) {}

  Task bucket(Group &group, int64_t index) override;
  Task tensor(Group &group, int64_t id, std::byte *whole) override;
  std::string text(int64_t ranks) const override;

 private:
  Task gather_slot(Group &group, const Slot &slot, int64_t index) const;
  /// Bytes of this rank's cut of a bucket if other ranks keep a copy of it; otherwise 0.
  int64_t copied_nbytes(const Slot &slot, int64_t index) const;

  const Layout &layout_;
  const TensorSlots &tensors_;
  QuantizedParams &quantized_params_;
};

}  // namespace zero
