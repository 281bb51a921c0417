/// @file ValueGather: gathers the values that ranks keep.
#include "engine/parameters/value_gather.h"

#include "group/collectives.h"

namespace zero {

Task ValueGather::bucket(Group &group, int64_t index) {
  const PlannedBucket &bucket = layout_.plan().bucket(index);
  const SlotMemory &slots = tensors_.memory();
  const SlotPlace &place = slots.place(slots.param(), index);
  const Cuts cuts = layout_.plan().bucket_cuts(index);
  ZERO_CO_AWAIT(all_gather(group, place.at(bucket.own.begin), place.at(0), cuts, place.dtype));
  if (!layout_.format_in(bucket).coded()) co_return Status();
  const SlotPlace &scales = slots.place(*slots.find(ZERO_SLOT_PARAM_SCALE), index);
  const Cuts lines = TensorSlots::entry_cuts(scales, cuts);
  co_return co_await all_gather(group, scales.at(bucket.own.begin), scales.at(0), lines, scales.dtype);
}

Task ValueGather::tensor(Group &group, int64_t id, std::byte *whole) {
  if (tensors_.coded(id)) co_return co_await quantized_params_.decode(group, id, whole);
  const Cuts cuts = layout_.plan().param_cuts(id);
  co_return co_await all_gather(group, tensors_.own_cut(tensors_.memory().param(), id), whole, cuts, params_[id].dtype,
                                static_cast<uint64_t>(id));
}

}  // namespace zero
