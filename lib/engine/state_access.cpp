/// @file Slots by range, whoever owns them, and views of what this rank updates.
#include "engine/optimizer.h"

#include "engine/ranged_io.h"

namespace zero {
namespace {

constexpr uint64_t kWrite = uint64_t{1} << 63;

uint64_t detail_of(int64_t id, int32_t slot, uint64_t direction) {
  return direction | (static_cast<uint64_t>(slot) << 48) | static_cast<uint64_t>(id);
}

}  // namespace

Status Optimizer::find_slot(int32_t number, const Slot **out) const {
  *out = slots_.find(number);
  ZERO_CHECK(*out != nullptr, ZERO_E_UNSUPPORTED, "slot %d is not kept by algorithm \"%s\" as it was sealed", number,
             settings_.algorithm_name());
  return {};
}

/// Where this rank's cut of a tensor lies in a slot; any address where the cut is empty.
std::byte *Optimizer::own_cut(const Slot &slot, int64_t id) const {
  const PlannedParam &param = plan_.param(id);
  const Range own = param.cuts[static_cast<size_t>(group_->rank())];
  if (own.empty()) return slot.data;
  const PlannedBucket &bucket = plan_.bucket(param.bucket);
  return slots_.at(slot, bucket, param.flat.begin - bucket.flat.begin + own.begin);
}

Task Optimizer::read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count) {
  return run(read_body(id, slot, offset, data, count));
}

Task Optimizer::write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count) {
  return run(write_body(id, slot, offset, data, count));
}

Task Optimizer::read_body(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count) {
  const Slot *from = nullptr;
  ZERO_CO_RETURN_IF_ERROR(check_phase("zero_optimizer_read", Phase::sealed, Phase::reduced));
  ZERO_CO_RETURN_IF_ERROR(check_range(id, offset, count));
  ZERO_CO_RETURN_IF_ERROR(find_slot(slot, &from));
  ZERO_CO_CHECK(slot != ZERO_SLOT_GRAD || phase_ == Phase::reduced, ZERO_E_STATE,
                "reduced gradients can be read between zero_optimizer_reduce and zero_optimizer_gather");
  if (params_[id].count == 0) co_return Status();
  const CutWhole whole{&plan_.param(id).cuts, own_cut(*from, id), from->dtype, detail_of(id, slot, 0)};
  ZERO_CO_TRY(read_range(*gather_group_, whole, {offset, offset + count}, data));
  co_return Status();
}

Task Optimizer::write_body(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count) {
  const Slot *to = nullptr;
  ZERO_CO_RETURN_IF_ERROR(check_phase("zero_optimizer_write", Phase::sealed, Phase::running));
  ZERO_CO_RETURN_IF_ERROR(check_range(id, offset, count));
  ZERO_CO_RETURN_IF_ERROR(find_slot(slot, &to));
  ZERO_CO_CHECK(slot != ZERO_SLOT_GRAD, ZERO_E_UNSUPPORTED, "gradients cannot be written; give them to zero_optimizer_grad_ready");
  if (params_[id].count == 0) co_return Status();
  const Cuts &cuts = plan_.param(id).cuts;
  std::byte *own = own_cut(*to, id);
  const CutWhole whole{&cuts, own, to->dtype, detail_of(id, slot, kWrite)};
  ZERO_CO_TRY(write_range(*gather_group_, whole, {offset, offset + count}, data));
  // States that every rank keeps follow their owners at once; parameters do so at begin.
  if (slot == ZERO_SLOT_PARAM || !to->whole) co_return Status();
  std::byte *start = to->data + plan_.param(id).flat.begin * dtype_nbytes(to->dtype);
  ZERO_CO_TRY(all_gather(*gather_group_, own, start, cuts, to->dtype));
  co_return Status();
}

Status Optimizer::view_count(int64_t *out) const {
  ZERO_TRY(check_call("zero_optimizer_view_count", Phase::sealed, Phase::reduced));
  *out = static_cast<int64_t>(views_.size());
  return {};
}

Status Optimizer::view(int64_t index, int32_t slot, View *out) {
  ZERO_TRY(check_call("zero_optimizer_view", Phase::running, Phase::reduced));
  const auto count = static_cast<int64_t>(views_.size());
  ZERO_CHECK(index >= 0 && index < count, ZERO_E_INVALID_ARGUMENT, "index is %lld, but there are %lld views", static_cast<long long>(index),
             static_cast<long long>(count));
  const Slot *from = nullptr;
  ZERO_TRY(find_slot(slot, &from));
  ZERO_CHECK(slot != ZERO_SLOT_GRAD || phase_ == Phase::reduced, ZERO_E_STATE,
             "views of gradients are valid between zero_optimizer_reduce and zero_optimizer_gather");
  View view = views_[static_cast<size_t>(index)];
  const PlannedParam &param = plan_.param(view.param);
  const PlannedBucket &bucket = plan_.bucket(param.bucket);
  view.data = slots_.at(*from, bucket, param.flat.begin - bucket.flat.begin + view.offset);
  *out = view;
  return {};
}

}  // namespace zero
