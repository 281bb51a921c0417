/// @file Copies entries from owners to all ranks, and lists views.
#include "engine/optimizer/sharded_state.h"

#include "group/collectives.h"

namespace zero {

Task ShardedState::follow_owners(Group &group, const Slot &slot, int64_t id) const {
  const SlotPlace &place = tensors.place(slot, id);
  if (!place.whole) co_return Status();
  const Cuts cuts = TensorSlots::entry_cuts(place, plan.param_cuts(id));
  co_return co_await all_gather(group, tensors.own_cut(slot, id), tensors.at(slot, id, 0), cuts, place.dtype);
}

void ShardedState::list_views(const Params &params, bool all) {
  const auto trains = [this](int64_t id) { return layout.format_of(id).trains; };
  if (!all) {
    for (const PlannedView &view : plan.views()) {
      if (trains(view.param)) views.push_back({view.param, view.offset, view.count, nullptr});
    }
    return;
  }
  for (int64_t id = 0; id < params.size(); ++id) {
    if (params[id].count > 0 && !params[id].tied() && trains(id)) views.push_back({id, 0, params[id].count, nullptr});
  }
}

}  // namespace zero
