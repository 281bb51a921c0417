/// @file The slot table and its arenas.
#include "engine/slot_memory.h"

#include <algorithm>

namespace zero {
namespace {

int64_t slot_nbytes(const Slot &slot, const Plan &plan) {
  return (slot.whole ? plan.extent() : plan.shard_extent()) * dtype_nbytes(slot.dtype);
}

/// An arena for one slot. What other ranks read in place is shared, unless there are none.
Status make_arena(const Slot &slot, const Plan &plan, bool shared, const MemorySource &source, Arena *out) {
  const int64_t nbytes = slot_nbytes(slot, plan);
  return shared ? Arena::create_shared(source, slot.category, nbytes, out) : Arena::create_private(source, slot.category, nbytes, out);
}

}  // namespace

Status SlotMemory::allocate(const Plan &plan, int64_t stage, std::span<const int32_t> states, bool alone, const MemorySource &source) {
  slots_.push_back({ZERO_SLOT_PARAM, DType::f32, ZERO_MEMORY_PARAM, alone || stage < 3, nullptr});
  slots_.push_back({ZERO_SLOT_GRAD, DType::f32, ZERO_MEMORY_GRAD, alone || stage < 2, nullptr});
  for (const int32_t number : states) slots_.push_back({number, DType::f32, ZERO_MEMORY_STATE, alone || stage < 1, nullptr});
  ZERO_TRY(make_arena(slots_[0], plan, !alone, source, &param_arena_));
  // A gradient shard is only this rank's: the buckets it is reduced from are what others read.
  ZERO_TRY(make_arena(slots_[1], plan, !alone && slots_[1].whole, source, &grad_arena_));
  slots_[0].data = param_arena_.data();
  slots_[1].data = grad_arena_.data();
  return allocate_states(plan, source);
}

Status SlotMemory::allocate_states(const Plan &plan, const MemorySource &source) {
  int64_t nbytes = 0;
  for (const Slot &slot : states()) nbytes += Arena::view_nbytes(slot_nbytes(slot, plan));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_STATE, nbytes, &state_arena_));
  for (size_t i = 2; i < slots_.size(); ++i) slots_[i].data = state_arena_.take(slot_nbytes(slots_[i], plan));
  return {};
}

void SlotMemory::release() {
  slots_.clear();
  param_arena_.release();
  grad_arena_.release();
  state_arena_.release();
}

const Slot *SlotMemory::find(int32_t number) const {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [number](const Slot &slot) { return slot.number == number; });
  return found != slots_.end() ? &*found : nullptr;
}

std::byte *SlotMemory::at(const Slot &slot, const PlannedBucket &bucket, int64_t index) const {
  const int64_t element = slot.whole ? bucket.flat.begin + index : bucket.shard_begin + index - bucket.own.begin;
  return slot.data + element * dtype_nbytes(slot.dtype);
}

std::vector<int32_t> state_slots(const Settings &settings, double momentum) {
  std::vector<int32_t> numbers;
  if (settings.algorithm == nullptr) {
    for (int64_t i = 0; i < settings.custom_slots; ++i) numbers.push_back(static_cast<int32_t>(ZERO_SLOT_CUSTOM + i));
    return numbers;
  }
  const bool has_momentum =
      std::find(settings.algorithm->keys.begin(), settings.algorithm->keys.end(), ZERO_KEY_MOMENTUM) != settings.algorithm->keys.end();
  if (has_momentum && momentum == 0) return numbers;
  numbers.assign(settings.algorithm->state_slot, settings.algorithm->state_slot + settings.algorithm->state_count);
  return numbers;
}

}  // namespace zero
