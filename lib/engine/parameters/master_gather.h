/// @file MasterGather: the strategy by which parameters take the values of their fp32 masters
/// before they travel. It serves the steps in which parameters that follow by differences are sent
/// in full.
#pragma once

#include "engine/layout/layout.h"
#include "engine/parameters/value_gather.h"
#include "engine/storage/tensor_slots.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class MasterGather final : public GatherStrategy {
 public:
  /// All arguments must outlive the object.
  MasterGather(ValueGather &values, const Layout &layout, const TensorSlots &tensors)
      : values_(values), layout_(layout), tensors_(tensors) {}

  Task bucket(Group &group, int64_t index) override;
  Task tensor(Group &group, int64_t id, std::byte *whole) override { return values_.tensor(group, id, whole); }
  bool changes_own() const override { return true; }

 private:
  void follow_masters(int64_t index) const;

  ValueGather &values_;
  const Layout &layout_;
  const TensorSlots &tensors_;
};

}  // namespace zero
