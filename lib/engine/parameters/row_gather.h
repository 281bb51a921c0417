/// @file RowGather: the strategy by which only those rows of tables travel that a step updated. It
/// serves steps that leave rows untouched; other parameters travel as values.
#pragma once

#include "engine/layout/layout.h"
#include "engine/parameters/value_gather.h"
#include "engine/storage/given_rows.h"
#include "engine/storage/row_packets.h"
#include "engine/storage/tensor_slots.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class RowGather final : public GatherStrategy {
 public:
  /// All arguments must outlive the object.
  RowGather(ValueGather &values, const Layout &layout, const TensorSlots &tensors, const GivenRows &rows)
      : values_(values), tensors_(tensors), rows_(rows), packets_(layout.plan()) {}

  Task bucket(Group &group, int64_t index) override;
  Task tensor(Group &group, int64_t id, std::byte *whole) override { return values_.tensor(group, id, whole); }

  Status open(const MemorySource &source) override;
  void close() override { packets_.close(); }

 private:
  ValueGather &values_;
  const TensorSlots &tensors_;
  const GivenRows &rows_;
  RowPackets packets_;
};

}  // namespace zero
