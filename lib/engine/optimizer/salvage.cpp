/// @file Salvage: after the other ranks were lost, a rank still reads the data that lies on it. Decides whether that data is of one step.
#include "engine/optimizer/optimizer.h"

#include "engine/storage/host_copy.h"

#include <cstring>

namespace zero {

/// Ranks were lost, which says nothing about this rank's memory. Ranks that make different calls are a defect of the program, and every call
/// reports it.
bool Optimizer::salvages() const { return poisons_group(failure_.code()) && failure_.code() != ZERO_E_MISMATCH; }

Status Optimizer::half_applied(const char *what) const {
  return Status::error(ZERO_E_CORRUPT,
                       "%s was half applied when ranks were lost, so the values on this rank mix those before and after it; create a new "
                       "optimizer and load a save (zero_optimizer_resume); the loss was: %s",
                       what, failure_.text());
}

/// Of calls that read what lies on this rank. What they ask for is checked as ever.
Status Optimizer::check_reads(const char *call, Phase first, Phase last) const {
  if (!salvages() || phase_ < first) return check_phase(call, first, last);
  return half_done_ == nullptr ? Status() : half_applied(half_done_);
}

/// What is kept changes from here on. Peers whose memory this rank writes may read theirs unless it has entered.
Status Optimizer::begin_change() {
  if (replicated_ || one_copy()) ZERO_TRY(groups_.gather()->transport().enter_memory());
  half_done_ = kStep;
  return {};
}

/// Peers enter in a step, once all ranks have come to its vote, and have left when it ends.
void Optimizer::end_change() {
  half_done_ = nullptr;
  if (!alone()) entries_ = groups_.gather()->transport().entries();
}

/// After the group has failed: a peer that went past the vote in which this rank failed may have begun to write here. No other will.
void Optimizer::close_memory() {
  if (alone() || groups_.gather() == nullptr) return;
  if (groups_.gather()->transport().close_memory() != entries_) half_done_ = kStep;
}

/// Whether param_acquire needs no other rank for it. True too of what is no parameter, for the call to say so.
bool Optimizer::holds_param(int64_t id) const {
  if (phase_ == Phase::building) return false;
  if (phase_ == Phase::sealed || !params_.check_id(id).ok()) return true;
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
  if (loss.ok() || !salvages() || phase_ == Phase::building) co_return loss;
  const Slot *from = nullptr;
  ZERO_CO_TRY(check_read(id, slot, offset, data, count, &from));
  if (params_[id].count == 0) co_return loss;
  bool follows = false;
  std::byte *here = entries_here(*from, id, {offset, offset + count}, &follows);
  if (here == nullptr) co_return loss;
  ZERO_CO_TRY(check_reads("zero_optimizer_read", Phase::sealed, Phase::reduced));
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(tell_update_counts());
  if (follows) {
    const Status arrived = co_await gathers_.arrived(plan_.param(params_.holder(id)).bucket);
    if (!arrived.ok()) co_return half_applied(kStep);
  }
  HostCopy copy;
  const int64_t nbytes = count * dtype_nbytes(tensors_.place(*from, id).dtype);
  ZERO_CO_TRY(copy.open(memory_source(), here, nbytes));
  std::memcpy(data, copy.data(), static_cast<size_t>(nbytes));
  co_return Status();
}

}  // namespace zero
