/// @file Salvage: after the other ranks were lost, a rank still reads its own data, if CallGuard
/// reports that all of it belongs to one step.
#include "engine/optimizer/state_access.h"

#include "engine/storage/host_copy.h"

#include <cstring>

namespace zero {

/// The address of a range of entries on this rank; nullptr if other ranks hold a part of it.
/// *out_follows: the range has the state after the last step only once gathers have arrived.
std::byte *StateAccess::entries_here(const Slot &slot, int64_t id, Range range, bool *out_follows) const {
  const SlotPlace &place = parts_.state.tensors.place(slot, id);
  const Range own{place.entries(parts_.state.tensors.own(id).begin), place.entries(parts_.state.tensors.own(id).end)};
  const bool is_own = range.begin >= own.begin && range.end <= own.end;
  const bool is_grad = slot.number == ZERO_SLOT_GRAD;
  *out_follows = (!is_own || parts_.gathers.strategy().changes_own()) && slot.category == ZERO_MEMORY_PARAM;
  if (range.empty() || !(is_own || (place.whole && (!is_grad || parts_.updates_all())))) return nullptr;
  return parts_.state.tensors.at(slot, id, place.per_tensor() ? 0 : range.begin * place.per);
}

/// Data on this rank is read without other ranks. `reads` is the collective, which finds that they
/// were lost, or knows it.
Task StateAccess::read_or_salvage(Task reads, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count) {
  Status loss = co_await reads;
  if (loss.ok() || !parts_.guard.salvages() || parts_.guard.phase() == CallGuard::Phase::building) co_return loss;
  const Slot *from = nullptr;
  ZERO_CO_TRY(check_read(id, slot, offset, data, count, &from));
  if (parts_.registry.params[id].count == 0) co_return loss;
  bool follows = false;
  std::byte *here = entries_here(*from, id, {offset, offset + count}, &follows);
  if (here == nullptr) co_return loss;
  ZERO_CO_TRY(parts_.guard.check_reads("zero_optimizer_read", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(parts_.tell_update_counts());
  if (follows) {
    const Status arrived = co_await parts_.gathers.arrived(parts_.state.plan.param(parts_.registry.params.holder(id)).bucket);
    if (!arrived.ok()) co_return parts_.guard.half_applied(CallGuard::kStep);
  }
  HostCopy copy;
  const int64_t nbytes = count * dtype_nbytes(parts_.state.tensors.place(*from, id).dtype);
  ZERO_CO_TRY(copy.open(parts_.memory_source(), here, nbytes));
  std::memcpy(data, copy.data(), static_cast<size_t>(nbytes));
  co_return Status();
}

}  // namespace zero
