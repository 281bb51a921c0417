/// @file Salvage: after the other ranks were lost, a rank still reads the data that lies on it. Decides whether that data is of one step.
#include "engine/optimizer/optimizer.h"

#include "engine/storage/host_copy.h"

#include <cstring>

namespace zero {

/// Whether param_acquire needs no other rank for it. True too of what is no parameter, for the call to say so.
bool Optimizer::holds_param(int64_t id) const {
  if (guard_.phase() == Phase::building) return false;
  if (guard_.phase() == Phase::sealed || !params_.check_id(id).ok()) return true;
  const int64_t holder = params_.holder(id);
  return !tensors_.sharded(holder) || access_[static_cast<size_t>(holder)].count > 0;
}

/// Where a range of entries lies on this rank; nullptr: a part of it lies on others. *out_follows: it is as the last step left it only once
/// gathers have arrived.
std::byte *Optimizer::entries_here(const Slot &slot, int64_t id, Range range, bool *out_follows) const {
  const SlotPlace &place = tensors_.place(slot, id);
  const Range own{place.entries(tensors_.own(id).begin), place.entries(tensors_.own(id).end)};
  const bool is_own = range.begin >= own.begin && range.end <= own.end;
  const bool is_grad = slot.number == ZERO_SLOT_GRAD;
  *out_follows = (!is_own || gathers_.differences().on()) && slot.category == ZERO_MEMORY_PARAM;
  if (range.empty() || !(is_own || (place.whole && (!is_grad || updates_all())))) return nullptr;
  return tensors_.at(slot, id, place.per_tensor() ? 0 : range.begin * place.per);
}

/// A read of what lies on this rank needs no others. `reads` is the collective, which finds out that they were lost, or knows it.
Task Optimizer::read_or_salvage(Task reads, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count) {
  Status loss = co_await reads;
  if (loss.ok() || !guard_.salvages() || guard_.phase() == Phase::building) co_return loss;
  const Slot *from = nullptr;
  ZERO_CO_TRY(check_read(id, slot, offset, data, count, &from));
  if (params_[id].count == 0) co_return loss;
  bool follows = false;
  std::byte *here = entries_here(*from, id, {offset, offset + count}, &follows);
  if (here == nullptr) co_return loss;
  ZERO_CO_TRY(guard_.check_reads("zero_optimizer_read", Phase::sealed, Phase::reduced));
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(tell_update_counts());
  if (follows) {
    const Status arrived = co_await gathers_.arrived(plan_.param(params_.holder(id)).bucket);
    if (!arrived.ok()) co_return guard_.half_applied(CallGuard::kStep);
  }
  HostCopy copy;
  const int64_t nbytes = count * dtype_nbytes(tensors_.place(*from, id).dtype);
  ZERO_CO_TRY(copy.open(memory_source(), here, nbytes));
  std::memcpy(data, copy.data(), static_cast<size_t>(nbytes));
  co_return Status();
}

}  // namespace zero
