/// @file Finds gradients that wait.
#include "engine/checkpoint/saved_gradients.h"

#include "core/number_text.h"
#include "engine/checkpoint/load_plan.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace zero {
namespace {

/// True if the tensor's gradient in the save can be that of the parameter here.
bool fits(const SavedState &state, int64_t id, const checkpoint::SavedSlot *slot) {
  DType dtype{};
  return slot != nullptr && state.takes_gradients() && dtype_in(*slot, &dtype) && dtype == state.format_of(id).grad && slot->per == 1;
}

}  // namespace

void plan_gradients(const SavedState &state, const checkpoint::SaveDescription &saved, std::span<const SavedPlace> places, LoadPlan *plan) {
  plan->gradients_copied.push_back(false);
  const int64_t section = plan->sections.back();
  if (section < 0 || fact(saved.sections[static_cast<size_t>(section)].facts, SavedState::kGradientScale).empty()) return;
  std::vector<std::pair<int64_t, checkpoint::Wanted>> found;
  WrongNames dropped;
  bool all = true;
  for (size_t index = 0; index < places.size(); ++index) {
    const auto id = static_cast<int64_t>(index);
    if (state.params()[id].tied() || state.params()[id].count == 0 || !state.format_of(id).trains) continue;
    checkpoint::Wanted wanted;
    const checkpoint::SavedSlot *slot = nullptr;
    if (places[index].section == section && places[index].tensor >= 0) {
      const auto &tensors = saved.sections[static_cast<size_t>(section)].tensors;
      slot = find_slot(tensors[static_cast<size_t>(places[index].tensor)], kGradientSlot, &wanted.slot);
    }
    all = all && fits(state, id, slot);
    dropped.add(quoted_name(state.params()[id].given_name + ":" + kGradientSlot));
    wanted.section = section;
    wanted.tensor = places[index].tensor;
    wanted.entries = state.own(id);
    if (!wanted.entries.empty()) found.emplace_back(id, wanted);
  }
  if (!all) return dropped.list("dropped", &plan->skipped);
  for (auto &[id, wanted] : found) {
    wanted.user = std::ssize(plan->targets);
    plan->copied.push_back(wanted);
    plan->targets.push_back({&state, id, ZERO_SLOT_GRAD, dtype_nbytes(state.format_of(id).grad), nullptr});
  }
  plan->gradients_copied.back() = true;
}

}  // namespace zero
