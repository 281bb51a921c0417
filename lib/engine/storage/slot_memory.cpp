/// @file The slot table and its arenas.
#include "engine/storage/slot_memory.h"

#include <algorithm>

namespace zero {

void SlotMemory::keep(int32_t number, int32_t category, size_t bucket, size_t bucket_count, const SlotPlace &place) {
  const auto has_number = [number](const Slot &slot) { return slot.number == number; };
  auto slot = std::find_if(slots_.begin(), slots_.end(), has_number);
  if (slot == slots_.end()) slot = slots_.insert(slots_.end(), {number, category, std::vector<SlotPlace>(bucket_count)});
  slot->places[bucket] = place;
}

void SlotMemory::list_slots(const Plan &plan, std::span<const Format> formats, Sharding sharding) {
  const size_t count = plan.buckets().size();
  const auto whole_below = [&](int64_t stage) { return sharding.alone || sharding.stage < stage; };
  slots_.push_back({ZERO_SLOT_PARAM, ZERO_MEMORY_PARAM, std::vector<SlotPlace>(count)});
  slots_.push_back({ZERO_SLOT_GRAD, ZERO_MEMORY_GRAD, std::vector<SlotPlace>(count)});
  for (size_t index = 0; index < count; ++index) {
    const PlannedBucket &bucket = plan.buckets()[index];
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    add_extents(static_cast<int64_t>(index), plan);
    const auto place = [&](DType dtype, int64_t per, bool whole) {
      const Range held = whole ? Range{0, bucket.flat.count()} : bucket.own;
      return SlotPlace{nullptr, held.begin, per, dtype, true, whole, held.count()};
    };
    const auto place_param = [&](DType dtype, int64_t per) {
      SlotPlace made = place(dtype, per, whole_below(3) || format.kept_whole);
      if (made.whole) return made;
      const Cuts held = plan.held_cuts(static_cast<int64_t>(index));
      made.held = held.back().end;
      made.before = held[static_cast<size_t>(plan.own_block())].begin;
      return made;
    };
    slots_[0].places[index] = place_param(format.param, 1);
    if (format.coded()) keep(ZERO_SLOT_PARAM_SCALE, ZERO_MEMORY_PARAM, index, count, place_param(DType::f32, kLine));
    if (!format.trains) continue;
    slots_[1].places[index] = place(format.grad, 1, whole_below(2));
    for (const SlotFormat &state : format.states) {
      keep(state.number, ZERO_MEMORY_STATE, index, count, place(state.dtype, state.per, whole_below(1)));
    }
    if (format.counts_updates) keep(ZERO_SLOT_UPDATE_COUNT, ZERO_MEMORY_STATE, index, count, place(DType::i64, kPerTensor, true));
  }
  for (Slot &slot : slots_) slot.tensors = slot.number == ZERO_SLOT_UPDATE_COUNT ? std::ssize(plan.params()) : 0;
}

/// Adds the totals of one bucket.
void SlotMemory::add_extents(int64_t index, const Plan &plan) {
  const PlannedBucket &bucket = plan.bucket(index);
  add_extent({0, bucket.flat.count()}, bucket, plan, extents_.emplace_back());
  add_extent(bucket.own, bucket, plan, own_extents_.emplace_back());
  Extent &held = held_extents_.emplace_back();
  for (int64_t block = 0; block < plan.block_count(); ++block) add_extent(plan.bucket_cut(index, plan.twin(block)), bucket, plan, held);
}

/// `range` is relative to the bucket.
void SlotMemory::add_extent(Range range, const PlannedBucket &bucket, const Plan &plan, Extent &sum) {
  for (const int64_t id : bucket.params) {
    const Range flat = plan.param(id).flat;
    const int64_t count = intersect(range, {flat.begin - bucket.flat.begin, flat.end - bucket.flat.begin}).count();
    sum.elements += count;
    sum.lines += round_up(count, kLine) / kLine;
    ++sum.tensors;
  }
}

/// Rounded up to whole lines, so that kernels may split the work at lines. Only the last of
/// the held cuts may end within a line.
int64_t SlotMemory::place_nbytes(const SlotPlace &place) {
  if (!place.kept) return 0;
  return Arena::view_nbytes(place.entries(round_up(place.held, kLine)) * dtype_nbytes(place.dtype));
}

/// The offset of the slot in its arena, after `taken` bytes of other slots.
int64_t SlotMemory::begin_of(const Slot &slot, int64_t taken) const {
  return round_up(taken, kPageNbytes) + (&slot - slots_.data()) * kSlotStagger;
}

int64_t SlotMemory::slot_nbytes(const Slot &slot) {
  if (slot.tensors > 0) return Arena::view_nbytes(slot.tensors * dtype_nbytes(DType::i64));
  int64_t nbytes = 0;
  for (const SlotPlace &place : slot.places) nbytes += place_nbytes(place);
  return nbytes;
}

int64_t SlotMemory::category_nbytes(int32_t category) const {
  int64_t end = 0;
  for (const Slot &slot : slots_) {
    const int64_t nbytes = slot.category == category ? slot_nbytes(slot) : 0;
    if (nbytes > 0) end = begin_of(slot, end) + nbytes;
  }
  return end;
}

int64_t SlotMemory::nbytes(const Plan &plan, std::span<const Format> formats, Sharding sharding) {
  SlotMemory memory;
  memory.list_slots(plan, formats, sharding);
  const int64_t params = sharding.adopts ? 0 : memory.category_nbytes(ZERO_MEMORY_PARAM);
  return params + memory.category_nbytes(ZERO_MEMORY_GRAD) + memory.category_nbytes(ZERO_MEMORY_STATE);
}

void SlotMemory::hand_out(std::byte *base, int32_t category) {
  int64_t end = 0;
  for (Slot &slot : slots_) {
    const int64_t nbytes = slot.category == category ? slot_nbytes(slot) : 0;
    if (nbytes == 0) continue;
    end = begin_of(slot, end);
    for (SlotPlace &place : slot.places) {
      if (place.kept) place.data = base + end + place.before / place.per * dtype_nbytes(place.dtype);
      if (slot.tensors == 0) end += place_nbytes(place);
    }
    if (slot.tensors > 0) end += nbytes;
  }
}

Status SlotMemory::allocate(const Plan &plan, std::span<const Format> formats, Sharding sharding, const MemorySource &source) {
  list_slots(plan, formats, sharding);
  adopts_ = sharding.adopts;
  const auto make = [&](int32_t category, bool shared, Arena *out) -> Status {
    const int64_t nbytes = category_nbytes(category);
    ZERO_TRY(shared ? Arena::create_shared(source, category, nbytes, out) : Arena::create_private(source, category, nbytes, out));
    hand_out(out->data(), category);
    return {};
  };
  if (adopts_) {
    ZERO_TRY(Arena::create_shared(source, ZERO_MEMORY_PARAM, 0, &param_arena_));
  } else {
    ZERO_TRY(make(ZERO_MEMORY_PARAM, !sharding.alone, &param_arena_));
  }
  // A gradient shard is private: other ranks read the buckets that it is reduced from.
  ZERO_TRY(make(ZERO_MEMORY_GRAD, !sharding.alone && sharding.stage < 2, &grad_arena_));
  return make(ZERO_MEMORY_STATE, sharding.shares_states, &state_arena_);
}

void SlotMemory::release() {
  slots_.clear();
  extents_.clear();
  own_extents_.clear();
  held_extents_.clear();
  param_arena_.release();
  grad_arena_.release();
  state_arena_.release();
}

const Slot *SlotMemory::find(int32_t number) const {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [number](const Slot &slot) { return slot.number == number; });
  return found != slots_.end() ? &*found : nullptr;
}

int64_t *SlotMemory::update_counts() const {
  const Slot *slot = find(ZERO_SLOT_UPDATE_COUNT);
  if (slot == nullptr) return nullptr;
  const auto kept = std::find_if(slot->places.begin(), slot->places.end(), [](const SlotPlace &place) { return place.kept; });
  return reinterpret_cast<int64_t *>(kept->data);
}

/// Tensors with slots of one entry per line begin on a line, so that their lines add up.
int64_t SlotMemory::formula_nbytes(int32_t category) const {
  int64_t nbytes = 0;
  for (const Slot &slot : slots_) {
    if (slot.category != category || (adopts_ && category == ZERO_MEMORY_PARAM)) continue;
    for (size_t i = 0; i < slot.places.size(); ++i) {
      const SlotPlace &place = slot.places[i];
      if (!place.kept) continue;
      const Extent &held = place.whole ? extents_[i] : category == ZERO_MEMORY_PARAM ? held_extents_[i] : own_extents_[i];
      nbytes += held.entries(place.per) * dtype_nbytes(place.dtype);
    }
  }
  return nbytes;
}

}  // namespace zero
