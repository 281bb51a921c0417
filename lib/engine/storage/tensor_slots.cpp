/// @file Finding a parameter's place in the slots of its bucket.
#include "engine/storage/tensor_slots.h"

#include <algorithm>

namespace zero {

bool TensorSlots::find(int32_t number, int64_t id, const Slot **out) const {
  *out = memory_.find(number);
  if (has_elements(id)) return *out != nullptr && place(**out, id).kept;
  if (*out != nullptr) return true;
  const std::vector<SlotFormat> slots = layout_.slots_of(id);
  return std::any_of(slots.begin(), slots.end(), [number](const SlotFormat &slot) { return slot.number == number; });
}

int64_t TensorSlots::in_bucket(int64_t id) const {
  const PlannedParam &param = layout_.plan().param(id);
  return param.flat.begin - layout_.plan().bucket(param.bucket).flat.begin;
}

std::byte *TensorSlots::at(const Slot &slot, int64_t id, int64_t offset) const {
  const SlotPlace &where = place(slot, id);
  if (where.per_tensor()) return where.data + params_.holder(id) * dtype_nbytes(where.dtype);
  return where.at(in_bucket(id) + offset);
}

std::byte *TensorSlots::own_cut(const Slot &slot, int64_t id) const {
  return own(id).empty() ? place(slot, id).data : at(slot, id, own(id).begin);
}

HeldPieces TensorSlots::held(const Slot &slot, int64_t id) const {
  const Plan &plan = layout_.plan();
  const int64_t bucket = plan.param(id).bucket;
  const SlotPlace &where = place(slot, id);
  HeldPieces pieces;
  int64_t before = 0;  // elements of earlier blocks
  for (int64_t block = 0; block < plan.block_count(); ++block) {
    const Range cut = plan.bucket_cut(bucket, plan.twin(block));
    const Range range = plan.param_cut(id, plan.twin(block));
    pieces.push_back({range, range.empty() ? where.data : where.held_at(before + in_bucket(id) + range.begin - cut.begin)});
    before += cut.count();
  }
  return pieces;
}

kernels::Elements TensorSlots::codes_at(int64_t id, int64_t offset) const {
  const int64_t bucket = layout_.plan().param(id).bucket;
  return {at(memory_.param(), id, offset), place(memory_.param(), id).dtype, memory_.param_scales_at(bucket, in_bucket(id) + offset)};
}

Range TensorSlots::updated(int64_t id) const {
  if (!has_elements(id) || params_[id].tied()) return {};
  return all_ ? Range{0, params_[id].count} : own(id);
}

bool TensorSlots::sharded(int64_t id) const { return has_elements(id) && !place(memory_.param(), id).whole; }

bool TensorSlots::any_buffered() const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (buffered(id)) return true;
  }
  return false;
}

Cuts TensorSlots::entry_cuts(const SlotPlace &place, const Cuts &elements) {
  Cuts cuts;
  for (const Range &cut : elements) cuts.push_back({place.entries(cut.begin), place.entries(cut.end)});
  return cuts;
}

}  // namespace zero
