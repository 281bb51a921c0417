/// @file ValueGather: the strategy by which parameters travel as they are kept: values, or 8-bit
/// codes and their scales.
#pragma once

#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/parameters/gather_strategy.h"
#include "engine/parameters/quantized_params.h"
#include "engine/storage/tensor_slots.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class ValueGather final : public GatherStrategy {
 public:
  /// All arguments must outlive the object.
  ValueGather(const Params &params, const Layout &layout, const TensorSlots &tensors, QuantizedParams &quantized_params)
      : params_(params), layout_(layout), tensors_(tensors), quantized_params_(quantized_params) {}

  Task bucket(Group &group, int64_t index) override;
  Task tensor(Group &group, int64_t id, std::byte *whole) override;

 private:
  const Params &params_;
  const Layout &layout_;
  const TensorSlots &tensors_;
  QuantizedParams &quantized_params_;
};

}  // namespace zero
