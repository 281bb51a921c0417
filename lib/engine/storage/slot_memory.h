/// @file SlotMemory: the memory of all slots on this rank. One table says for each slot and bucket
/// its dtype and whether this rank holds all of it or its shard. Knows no collectives and no
/// arithmetic.
#pragma once

#include "core/dtype.h"
#include "engine/config/settings.h"
#include "engine/layout/format.h"
#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <zero/optimizer.h>

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

inline constexpr int64_t kPageNbytes = 4096;
/// The offset between the beginnings of consecutive slots, beside whole pages. Loops over several
/// slots load ahead of their stores. If addresses are equal within a page, loads wait for unrelated
/// stores (SGD ran at three quarters of its speed).
/// If addresses are equal below a high power of two, or differ by less than a page there, lines
/// evict one another from caches. Example: AdamW on AMD's Zen 4 took 1.3 times as long over arrays
/// of 2^26 elements at a difference of 704 bytes.
inline constexpr int64_t kSlotStagger = kPageNbytes + 11 * kViewAlignment;

/// The location of a bucket's elements in one slot.
struct SlotPlace {
  std::byte *data = nullptr;  ///< per tensor: the table of all parameters, indexed by id
  int64_t first = 0;          ///< the bucket's element at data
  int64_t per = 1;            ///< elements per entry
  DType dtype = DType::f32;
  bool kept = false;   ///< false: this bucket has no such slot
  bool whole = false;  ///< all of the bucket; otherwise this rank's shard
  /// Elements that this rank holds. In stage 3 they are the cuts of Plan::held_cuts(), of which the
  /// shard is one.
  int64_t held = 0;
  int64_t before = 0;  ///< elements of held cuts in front of the shard

  bool per_tensor() const { return per == kPerTensor; }
  int64_t entries(int64_t elements) const { return (elements + per - 1) / per; }
  /// Element `index` of the bucket, on a multiple of `per`. Not per tensor.
  std::byte *at(int64_t index) const { return data + (index - first) / per * dtype_nbytes(dtype); }
  /// Held element `index`, on a multiple of `per`. Not per tensor.
  std::byte *held_at(int64_t index) const { return data + (index - before) / per * dtype_nbytes(dtype); }
};

struct Slot {
  int32_t number;    ///< a zero_slot
  int32_t category;  ///< a zero_memory
  std::vector<SlotPlace> places;
  int64_t tensors = 0;  ///< above 0: number of entries, one per tensor, the same on every rank
};

/// The settings that decide which rank holds which part.
struct Sharding {
  int64_t stage;
  bool alone;                  ///< a world of one: every slot is whole and private
  bool adopts = false;         ///< parameters are in another rank's memory
  bool shares_states = false;  ///< other ranks write into the states; stage 0
};

class SlotMemory {
 public:
  /// `formats` are those of the plan's spaces. Bytes on top of formula_nbytes are padding.
  Status allocate(const Plan &plan, std::span<const Format> formats, Sharding sharding, const MemorySource &source);
  /// The bytes that allocate() would take.
  static int64_t nbytes(const Plan &plan, std::span<const Format> formats, Sharding sharding);
  /// If sharding adopts: places parameters at `base`, laid out as in the arena of the rank that
  /// keeps them.
  void adopt_params(std::byte *base) { hand_out(base, ZERO_MEMORY_PARAM); }
  void release();

  /// Returns nullptr if no parameter has the slot.
  const Slot *find(int32_t number) const;
  const Slot &param() const { return slots_[0]; }
  const Slot &grad() const { return slots_[1]; }

  const SlotPlace &place(const Slot &slot, int64_t bucket) const { return slot.places[static_cast<size_t>(bucket)]; }
  /// Scales of a quantized parameter. The first one is that of the bucket's element `index`, which
  /// is on a line.
  float *param_scales_at(int64_t bucket, int64_t index) const {
    return reinterpret_cast<float *>(place(*find(ZERO_SLOT_PARAM_SCALE), bucket).at(index));
  }

  /// ZERO_SLOT_UPDATE_COUNT of all parameters, by id; nullptr if none is kept.
  int64_t *update_counts() const;

  /// Bytes of a category without padding and gaps (for two fp32 states Rajbhandari et al., "ZeRO",
  /// 2020, figure 1).
  int64_t formula_nbytes(int32_t category) const;

  /// nullptr if the memory is private.
  const std::shared_ptr<Mapping> &param_mapping() const { return param_arena_.mapping(); }
  const std::shared_ptr<Mapping> &grad_mapping() const { return grad_arena_.mapping(); }
  const std::shared_ptr<Mapping> &state_mapping() const { return state_arena_.mapping(); }

 private:
  /// Totals over the tensors of a bucket, or over a part of them.
  struct Extent {
    int64_t elements = 0;
    int64_t lines = 0;  ///< sum over tensors; a partial line counts as one
    int64_t tensors = 0;
    int64_t entries(int64_t per) const { return per == kPerTensor ? tensors : per == kLine ? lines : elements; }
  };

  static void add_extent(Range range, const PlannedBucket &bucket, const Plan &plan, Extent &sum);
  void add_extents(int64_t index, const Plan &plan);
  void list_slots(const Plan &plan, std::span<const Format> formats, Sharding sharding);
  void keep(int32_t number, int32_t category, size_t bucket, size_t bucket_count, const SlotPlace &place);
  static int64_t place_nbytes(const SlotPlace &place);
  static int64_t slot_nbytes(const Slot &slot);
  int64_t begin_of(const Slot &slot, int64_t taken) const;
  int64_t category_nbytes(int32_t category) const;
  void hand_out(std::byte *base, int32_t category);

  std::vector<Slot> slots_;
  std::vector<Extent> extents_;       ///< by bucket
  std::vector<Extent> own_extents_;   ///< by bucket: the part that this rank owns
  std::vector<Extent> held_extents_;  ///< by bucket: the parts of parameters that it holds
  bool adopts_ = false;
  Arena param_arena_;
  Arena grad_arena_;
  Arena state_arena_;
};

}  // namespace zero
