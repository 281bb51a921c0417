/// @file SlotMemory: what is kept per element, and where it lies on this rank. One table says for each slot its dtype and whether this rank
/// holds all of it or a shard. Knows no collectives and no arithmetic.
#pragma once

#include "core/dtype.h"
#include "engine/plan.h"
#include "engine/settings.h"
#include "memory/arena.h"

#include <zero/optimizer.h>

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

struct Slot {
  int32_t number;  ///< a zero_slot
  DType dtype;
  int32_t category;  ///< a zero_memory
  bool whole;        ///< all of the flat space; otherwise this rank's cuts one after another
  std::byte *data;
};

class SlotMemory {
 public:
  /// Bytes on top of the formula are padding. With `alone` (a world of one) every slot is whole and private.
  Status allocate(const Plan &plan, int64_t stage, std::span<const int32_t> states, bool alone, const MemorySource &source);
  void release();

  /// nullptr for a slot that the algorithm does not have.
  const Slot *find(int32_t number) const;
  const Slot &param() const { return slots_[0]; }
  const Slot &grad() const { return slots_[1]; }
  std::span<const Slot> states() const { return std::span(slots_).subspan(2); }

  /// Element `index` of a bucket; a sharded slot has only those of this rank's cut.
  std::byte *at(const Slot &slot, const PlannedBucket &bucket, int64_t index) const;
  float *f32(const Slot &slot, const PlannedBucket &bucket, int64_t index) const {
    return reinterpret_cast<float *>(at(slot, bucket, index));
  }

  /// nullptr where the memory is private.
  const std::shared_ptr<Mapping> &param_mapping() const { return param_arena_.mapping(); }
  const std::shared_ptr<Mapping> &grad_mapping() const { return grad_arena_.mapping(); }

 private:
  Status allocate_states(const Plan &plan, const MemorySource &source);

  std::vector<Slot> slots_;
  Arena param_arena_;
  Arena grad_arena_;
  Arena state_arena_;
};

/// Numbers of the state slots that the settings ask for.
std::vector<int32_t> state_slots(const Settings &settings, double momentum);

}  // namespace zero
