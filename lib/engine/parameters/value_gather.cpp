/// @file ValueGather: gathers the values that ranks keep.
#include "engine/parameters/value_gather.h"

#include "core/number_text.h"
#include "engine/parameters/tensor_gather.h"
#include "group/collectives.h"

namespace zero {

Task ValueGather::bucket(Group &group, int64_t index) {
  const SlotMemory &slots = tensors_.memory();
  ZERO_CO_AWAIT(gather_slot(group, slots.param(), index));
  if (!layout_.format_in(layout_.plan().bucket(index)).coded()) co_return Status();
  co_return co_await gather_slot(group, *slots.find(ZERO_SLOT_PARAM_SCALE), index);
}

/// A bucket that is whole everywhere is gathered over all ranks, others over the ranks that hold
/// the same cuts, each of which owns one.
Task ValueGather::gather_slot(Group &group, const Slot &slot, int64_t index) const {
  const Plan &plan = layout_.plan();
  const SlotPlace &place = tensors_.memory().place(slot, index);
  const Cuts cuts = TensorSlots::entry_cuts(place, place.whole ? plan.bucket_cuts(index) : plan.held_cuts(index));
  co_return co_await all_gather(group, place.at(plan.bucket(index).own.begin), place.held_at(0), cuts, place.dtype);
}

Task ValueGather::tensor(Group &group, int64_t id, std::byte *whole) {
  if (tensors_.coded(id)) co_return co_await quantized_params_.decode(group, id, whole);
  co_return co_await gather_tensor(group, layout_.plan(), tensors_, tensors_.memory().param(), id, whole);
}

int64_t ValueGather::copied_nbytes(const Slot &slot, int64_t index) const {
  const SlotPlace &place = tensors_.memory().place(slot, index);
  return place.whole ? 0 : place.entries(layout_.plan().bucket(index).own.count()) * dtype_nbytes(place.dtype);
}

std::string ValueGather::text(int64_t /*ranks*/) const {
  const Plan &plan = layout_.plan();
  const SlotMemory &slots = tensors_.memory();
  if (plan.block_count() == 1) return {};
  int64_t nbytes = 0;
  for (const int64_t index : plan.order()) {
    nbytes += copied_nbytes(slots.param(), index);
    if (layout_.format_in(plan.bucket(index)).coded()) nbytes += copied_nbytes(*slots.find(ZERO_SLOT_PARAM_SCALE), index);
  }
  return "parameters are sharded over " + count_text(plan.block_ranks(), "rank") + ", states over " + std::to_string(plan.rank_count()) +
         ": " + std::to_string(plan.block_count()) + " copies, each gathered by its own ranks; this rank sends " +
         std::to_string((plan.block_count() - 1) * nbytes) + " bytes to the other copies after an update";
}

}  // namespace zero
