/// @file TensorSlots: the addresses of each parameter's slots on this rank, and the ranges that are
/// its own. Knows addresses; never their contents.
#pragma once

#include "core/frame_cache.h"
#include "core/partition.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/storage/slot_memory.h"
#include "kernels/update.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// A piece of a tensor on this rank.
struct HeldPiece {
  Range range;      ///< within the tensor; may be empty
  std::byte *data;  ///< any address if it is empty
};
using HeldPieces = std::vector<HeldPiece, CachedAllocator<HeldPiece>>;

class TensorSlots {
 public:
  /// `all`: this rank updates all elements, not only its shards. All arguments must outlive the
  /// object.
  TensorSlots(const Params &params, const Layout &layout, const SlotMemory &memory, bool all)
      : params_(params), layout_(layout), memory_(memory), all_(all) {}

  const SlotMemory &memory() const { return memory_; }

  /// Returns false if no such slot is kept for the parameter; *out is then unusable. A parameter
  /// without elements has the slots of its format, but no memory: *out may then be nullptr.
  bool find(int32_t number, int64_t id, const Slot **out) const;

  /// @name Only for parameters with elements
  /// @{
  const SlotPlace &place(const Slot &slot, int64_t id) const { return memory_.place(slot, layout_.plan().param(id).bucket); }
  /// Address of element `offset`, or of the only entry of a slot per tensor.
  std::byte *at(const Slot &slot, int64_t id, int64_t offset) const;
  /// Address of this rank's shard; any address if the shard is empty.
  std::byte *own_cut(const Slot &slot, int64_t id) const;
  /// By block of ranks: the pieces of a sharded parameter, or of its scales, that this rank holds.
  /// They are its own shard and copies of others' (Plan::twin()).
  HeldPieces held(const Slot &slot, int64_t id) const;
  std::byte *whole_param(int64_t id) const { return at(memory_.param(), id, 0); }
  /// A quantized parameter from element `offset` on, which is on a line.
  kernels::Elements codes_at(int64_t id, int64_t offset) const;
  /// @}

  /// Elements that this rank owns.
  Range own(int64_t id) const { return layout_.plan().own_param_cut(id); }
  /// Elements that this rank updates; none of a tied parameter.
  Range updated(int64_t id) const;
  /// True if this rank keeps only its shard of the parameter.
  bool sharded(int64_t id) const;
  /// True if the parameter is stored quantized.
  bool coded(int64_t id) const { return has_elements(id) && layout_.format_of(id).coded(); }
  /// True if acquiring the parameter fills a buffer. The acquired values then do not change with a
  /// step.
  bool buffered(int64_t id) const { return sharded(id) || coded(id); }
  bool any_buffered() const;
  /// Converts cuts in elements to cuts in entries of a slot.
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
