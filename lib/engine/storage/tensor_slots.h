/// @file TensorSlots: where the slots of each parameter lie on this rank, and what of them is its own. Knows addresses; never what they
/// hold.
#pragma once

#include "core/partition.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/storage/slot_memory.h"
#include "kernels/update.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class TensorSlots {
 public:
  /// `all`: this rank updates everything, not only its cuts. What is given must outlive it.
  TensorSlots(const Params &params, const Layout &layout, const SlotMemory &memory, bool all)
      : params_(params), layout_(layout), memory_(memory), all_(all) {}

  const SlotMemory &memory() const { return memory_; }

  /// False: no such slot is kept for the parameter, and *out is of no use. One without elements has the slots of its format, but no memory:
  /// *out may then be nullptr.
  bool find(int32_t number, int64_t id, const Slot **out) const;

  /// @name Of a parameter with elements
  /// @{
  const SlotPlace &place(const Slot &slot, int64_t id) const { return memory_.place(slot, layout_.plan().param(id).bucket); }
  /// Element `offset`, or of a slot per tensor its one entry.
  std::byte *at(const Slot &slot, int64_t id, int64_t offset) const;
  /// Where this rank's cut lies; any address where the cut is empty.
  std::byte *own_cut(const Slot &slot, int64_t id) const;
  std::byte *whole_param(int64_t id) const { return at(memory_.param(), id, 0); }
  /// Of a coded parameter, from element `offset` on, which is on a line.
  kernels::Elements codes_at(int64_t id, int64_t offset) const;
  /// @}

  /// Elements that this rank owns.
  Range own(int64_t id) const { return layout_.plan().own_param_cut(id); }
  /// Elements that it updates; none of a tied parameter.
  Range updated(int64_t id) const;
  /// True when it keeps only its cut of the parameter.
  bool sharded(int64_t id) const;
  /// True when the parameter is stored as codes.
  bool coded(int64_t id) const { return has_elements(id) && layout_.format_of(id).coded(); }
  /// True when acquiring the parameter fills a buffer, so that what was acquired does not change with a step.
  bool buffered(int64_t id) const { return sharded(id) || coded(id); }
  bool any_buffered() const;
  /// Cuts of elements counted in entries of a slot.
  static Cuts entry_cuts(const SlotPlace &place, const Cuts &elements);

 private:
  bool has_elements(int64_t id) const { return layout_.plan().param(id).bucket >= 0; }
  int64_t in_bucket(int64_t id) const;

  const Params &params_;
  const Layout &layout_;
  const SlotMemory &memory_;
  const bool all_;
};

}  // namespace zero
