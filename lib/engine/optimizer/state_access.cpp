/// @file StateAccess: slots by range, whichever rank owns them, and views of the part that this
/// rank updates.
#include "engine/optimizer/state_access.h"

#include "core/choice.h"
#include "engine/storage/ranged_io.h"
#include "engine/storage/remainders.h"
#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <array>
#include <cstring>
#include <vector>

namespace zero {
namespace {

constexpr Choice kSlots[] = {{ZERO_SLOT_PARAM, "ZERO_SLOT_PARAM"},
                             {ZERO_SLOT_GRAD, "ZERO_SLOT_GRAD"},
                             {ZERO_SLOT_MASTER, "ZERO_SLOT_MASTER"},
                             {ZERO_SLOT_AVERAGE, "ZERO_SLOT_AVERAGE"},
                             {ZERO_SLOT_PARAM_SCALE, "ZERO_SLOT_PARAM_SCALE"},
                             {ZERO_SLOT_ANCHOR, "ZERO_SLOT_ANCHOR"},
                             {ZERO_SLOT_UPDATE_COUNT, "ZERO_SLOT_UPDATE_COUNT"},
                             {ZERO_SLOT_FIRST_MOMENT, "ZERO_SLOT_FIRST_MOMENT"},
                             {ZERO_SLOT_SECOND_MOMENT, "ZERO_SLOT_SECOND_MOMENT"},
                             {ZERO_SLOT_OUTER_MOMENT, "ZERO_SLOT_OUTER_MOMENT"},
                             {ZERO_SLOT_FIRST_SCALE, "ZERO_SLOT_FIRST_SCALE"},
                             {ZERO_SLOT_SECOND_SCALE, "ZERO_SLOT_SECOND_SCALE"},
                             {ZERO_SLOT_CUSTOM, "ZERO_SLOT_CUSTOM"},
                             {ZERO_SLOT_CUSTOM + 1, "ZERO_SLOT_CUSTOM + 1"},
                             {ZERO_SLOT_CUSTOM + 2, "ZERO_SLOT_CUSTOM + 2"},
                             {ZERO_SLOT_CUSTOM + 3, "ZERO_SLOT_CUSTOM + 3"}};

constexpr uint64_t kWrite = uint64_t{1} << 63;
constexpr int64_t kMostUpdates = int64_t{1} << 62;

/// Those that a step count may have.
Status check_update_counts(const void *data, int64_t count) {
  const auto *values = static_cast<const int64_t *>(data);
  for (int64_t i = 0; i < count; ++i) {
    ZERO_CHECK(values[i] >= 0 && values[i] <= kMostUpdates, ZERO_E_INVALID_ARGUMENT, "an update count is %lld, but must be 0 .. %lld",
               lld(values[i]), lld(kMostUpdates));
  }
  return {};
}

uint64_t detail_of(int64_t id, int32_t slot, uint64_t direction) {
  return direction | (static_cast<uint64_t>(slot) << 48) | static_cast<uint64_t>(id);
}

/// The ranges of all ranks go into every replica: those of one replica's ranks after those of
/// another, so that the highest rank's stay.
Task write_ranges(const OptimizerGroups &groups, CutWhole whole, Range range, const void *data, bool *out_any) {
  Group &within = *groups.gather();
  if (groups.across() == nullptr) co_return co_await write_range(within, whole, range, data, out_any);
  Group &across = *groups.across();
  across.set_caller(Caller::write);
  const std::array<int64_t, 2> mine = {range.begin, range.end};
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(across.size()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.detail = whole.detail;
  ZERO_CO_AWAIT(all_gather_words(across, fingerprint, mine, all));
  for (int64_t replica = 0; replica < across.size(); ++replica) {
    const Range other{all[static_cast<size_t>(2 * replica)], all[static_cast<size_t>(2 * replica + 1)]};
    const int64_t nbytes = other.count() * dtype_nbytes(whole.dtype);
    std::vector<std::byte> values(static_cast<size_t>(nbytes));
    if (replica == across.rank() && nbytes > 0) std::memcpy(values.data(), data, values.size());
    ZERO_CO_AWAIT(broadcast(across, values.data(), nbytes, DType::u8, replica));
    bool any = false;
    ZERO_CO_AWAIT(write_range(within, whole, other, values.data(), &any));
    *out_any = *out_any || any;
  }
  co_return Status();
}

}  // namespace

/// *out as TensorSlots::find sets it.
Status StateAccess::find_slot(int32_t number, int64_t id, const Slot **out) const {
  if (parts_.state.tensors.find(number, id, out)) return {};
  std::vector<Choice> kept;
  const Slot *slot = nullptr;
  for (const Choice &choice : kSlots) {
    if (parts_.state.tensors.find(static_cast<int32_t>(choice.value), id, &slot)) kept.push_back(choice);
  }
  const Choice *known = find_choice(kSlots, number);
  return Status::error(ZERO_E_UNSUPPORTED, "slot is %d%s%s, but must be %s, which are those of %s", number, known != nullptr ? ", " : "",
                       known != nullptr ? known->name : "", choices_text(kept).c_str(), parts_.registry.params[id].text().c_str());
}

Status StateAccess::slot_count(int64_t id, int64_t *out) const {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_slot_count", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_TRY(parts_.registry.params.check_id(id));
  *out = static_cast<int64_t>(parts_.state.layout.slots_of(id).size());
  return {};
}

Status StateAccess::slot(int64_t id, int64_t index, SlotInfo *out) const {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_slot", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_TRY(parts_.registry.params.check_id(id));
  const std::vector<SlotFormat> slots = parts_.state.layout.slots_of(id);
  ZERO_TRY(check_index(index, static_cast<int64_t>(slots.size()), "index", ("slots of " + parts_.registry.params[id].name).c_str()));
  const SlotFormat &slot = slots[static_cast<size_t>(index)];
  *out = {slot.number, slot.dtype, (parts_.registry.params[id].count + slot.per - 1) / slot.per};
  return {};
}

Task StateAccess::read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream) {
  return read_or_salvage(parts_.guard.run(parts_.in_order(read_body(id, slot, offset, data, count), stream), Caller::read), id, slot,
                         offset, data, count);
}

Status StateAccess::check_read(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count, const Slot **out) const {
  ZERO_TRY(check_entries(id, slot, offset, count, out));
  ZERO_TRY(parts_.memory->check_on_host(data, "data"));
  ZERO_CHECK(slot != ZERO_SLOT_GRAD || (parts_.guard.phase() == CallGuard::Phase::reduced && parts_.step.splits), ZERO_E_STATE,
             "reduced gradients can be read between zero_optimizer_reduce and zero_optimizer_gather");
  return {};
}

Task StateAccess::read_body(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count) {
  const Slot *from = nullptr;
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_read", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_CO_TRY(check_read(id, slot, offset, data, count, &from));
  if (parts_.registry.params[id].count == 0) co_return Status();
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(parts_.tell_update_counts());
  const SlotPlace &place = parts_.state.tensors.place(*from, id);
  const Cuts cuts = TensorSlots::entry_cuts(place, parts_.state.plan.param_cuts(id));
  const CutWhole whole{&cuts, parts_.state.tensors.own_cut(*from, id), place.dtype, detail_of(id, slot, 0)};
  ZERO_CO_AWAIT(read_range(*parts_.groups.gather(), whole, {offset, offset + count}, data));
  co_return Status();
}

Task StateAccess::write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count) {
  const Slot *to = nullptr;
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_write", CallGuard::Phase::sealed, CallGuard::Phase::running));
  ZERO_CO_TRY(check_entries(id, slot, offset, count, &to));
  ZERO_CO_TRY(parts_.memory->check_on_host(data, "data"));
  ZERO_CO_CHECK(slot != ZERO_SLOT_GRAD, ZERO_E_UNSUPPORTED, "gradients cannot be written; give them to zero_optimizer_grad_ready");
  const bool of_param = slot == ZERO_SLOT_PARAM || slot == ZERO_SLOT_PARAM_SCALE;
  ZERO_CO_CHECK(!of_param || !(parts_.gradients.any_acquired() || parts_.gradients.started()), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before parameters are written");
  ZERO_CO_CHECK(slot != ZERO_SLOT_FIRST_MOMENT || !parts_.settings.replicas.code_freeze || !parts_.gradients.started(), ZERO_E_STATE,
                "gradients of a step were given, and with ZERO_KEY_CODE_FREEZE they carry first moments; zero_optimizer_step comes before "
                "those are written");
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(check_update_counts(data, count));
  if (parts_.registry.params[id].count == 0) co_return Status();
  ZERO_CO_AWAIT(parts_.await_readers());
  if (slot == ZERO_SLOT_UPDATE_COUNT) ZERO_CO_TRY(parts_.tell_update_counts());
  bool any = false;
  const Status written = co_await write_entries(*to, id, {offset, offset + count}, data, &any);
  if (!written.ok() && any) parts_.guard.changes_in("zero_optimizer_write");
  ZERO_CO_TRY(written);
  co_return parts_.verifier.note_write(id, slot);
}

/// *out_any: whether any rank has begun to write.
Task StateAccess::write_entries(const Slot &to, int64_t id, Range range, const void *data, bool *out_any) {
  const int32_t slot = to.number;
  const bool of_param = slot == ZERO_SLOT_PARAM || slot == ZERO_SLOT_PARAM_SCALE;
  const SlotPlace &place = parts_.state.tensors.place(to, id);
  const Cuts cuts = TensorSlots::entry_cuts(place, parts_.state.plan.param_cuts(id));
  std::byte *own = parts_.state.tensors.own_cut(to, id);
  const CutWhole whole{&cuts, own, place.dtype, detail_of(id, slot, kWrite)};
  const Slot *completes = slot == ZERO_SLOT_PARAM ? unwritten_remainder(id) : nullptr;
  Remainders remainders;
  if (completes != nullptr) {
    Status kept =
        remainders.keep(parts_.memory_source(), own, parts_.state.tensors.own_cut(*completes, id), parts_.state.tensors.own(id).count());
    ZERO_CO_AWAIT(agree_on(*parts_.groups.gather(), std::move(kept), "zero_optimizer_write"));
  }
  ZERO_CO_AWAIT(write_ranges(parts_.groups, whole, range, data, out_any));
  const bool any = *out_any;
  if (any) parts_.first_values.note_state(slot, parts_.registry.params.holder(id));
  // Masters of all replicas were given the same values, which outer steps count from.
  if (any && slot == ZERO_SLOT_MASTER && !parts_.replicas.differ()) parts_.replicas.meet();
  if (of_param) parts_.first_values.note_params(id, parts_.guard.phase() == CallGuard::Phase::running, any);
  if (!of_param) ZERO_CO_AWAIT(parts_.state.follow_owners(*parts_.groups.gather(), to, id));
  if (completes != nullptr && any) {
    ZERO_CO_AWAIT(agree_on(*parts_.groups.gather(), remainders.clear_changed(), "zero_optimizer_write"));
    ZERO_CO_AWAIT(parts_.state.follow_owners(*parts_.groups.gather(), *completes, id));
  }
  co_return Status();
}

/// The slot of the master if it is a remainder that was not itself written since the last begin;
/// otherwise nullptr.
const Slot *StateAccess::unwritten_remainder(int64_t id) const {
  const Slot *master = nullptr;
  if (!parts_.state.tensors.find(ZERO_SLOT_MASTER, id, &master) || parts_.first_values.wrote_master(parts_.registry.params.holder(id)))
    return nullptr;
  return parts_.state.tensors.place(*master, id).dtype == DType::u16 ? master : nullptr;
}

/// A range in entries of a slot.
Status StateAccess::check_entries(int64_t id, int32_t slot, int64_t offset, int64_t count, const Slot **out) const {
  ZERO_TRY(parts_.registry.params.check_id(id));
  ZERO_TRY(find_slot(slot, id, out));
  if (parts_.registry.params[id].count == 0) return parts_.registry.check_range(id, offset, count);
  const int64_t entries = parts_.state.tensors.place(**out, id).entries(parts_.registry.params[id].count);
  ZERO_CHECK(offset >= 0 && count >= 0 && offset <= entries && count <= entries - offset, ZERO_E_INVALID_ARGUMENT,
             "offset %lld and count %lld are given, but the entries of the %s of %s are %lld", lld(offset), lld(count),
             slot_name(slot).c_str(), parts_.registry.params[id].name.c_str(), lld(entries));
  return {};
}

Status StateAccess::view_count(int64_t *out) const {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_view_count", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  *out = static_cast<int64_t>(parts_.state.views.size());
  return {};
}

Status StateAccess::view(int64_t index, int32_t slot, View *out) const {
  ZERO_TRY(parts_.guard.check_idle("zero_optimizer_view"));
  ZERO_TRY(parts_.guard.check_reads("zero_optimizer_view", CallGuard::Phase::running, CallGuard::Phase::reduced));
  const auto count = static_cast<int64_t>(parts_.state.views.size());
  ZERO_TRY(check_index(index, count, "index", "views"));
  View view = parts_.state.views[static_cast<size_t>(index)];
  const Slot *from = nullptr;
  ZERO_TRY(find_slot(slot, view.param, &from));
  ZERO_CHECK(slot != ZERO_SLOT_GRAD || (parts_.guard.phase() == CallGuard::Phase::reduced && parts_.step.splits), ZERO_E_STATE,
             "views of gradients are valid between zero_optimizer_reduce and zero_optimizer_gather");
  ZERO_CHECK(
      slot != ZERO_SLOT_PARAM || !parts_.gathers.strategy().changes_own(), ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GATHER_CODE is set, so that parameters change on all ranks alike, by differences to their masters; change the view of "
      "ZERO_SLOT_MASTER instead, and read parameters with zero_optimizer_param_acquire");
  view.data = parts_.state.tensors.at(*from, view.param, view.offset);
  *out = view;
  return {};
}

Status StateAccess::module_buffer(int64_t id, void **out_data, int64_t *out_count) const {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_module_buffer", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_TRY(parts_.registry.module_buffers.check_id(id));
  *out_data = parts_.registry.module_buffers[id].data;
  *out_count = parts_.registry.module_buffers[id].count;
  return {};
}

Task StateAccess::sync_module_buffers() {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_sync_module_buffers", CallGuard::Phase::sealed, CallGuard::Phase::reduced));
  ZERO_CO_AWAIT(parts_.registry.module_buffers.sync(*parts_.groups.gather()));
  if (parts_.groups.across() == nullptr) co_return Status();
  parts_.groups.across()->set_caller(Caller::sync_module_buffers);
  ZERO_CO_AWAIT(parts_.registry.module_buffers.sync(*parts_.groups.across()));
  co_return Status();
}

}  // namespace zero
