/// @file Finds sets of states.
#include "engine/checkpoint/state_sets.h"

#include "engine/optimizer/saved_state.h"

#include <iterator>
#include <string>

namespace zero {

std::vector<int64_t> state_sets_of(const checkpoint::SaveDescription &saved, int64_t first) {
  std::vector<int64_t> sets{first};
  for (int64_t section = 0; first >= 0 && section < std::ssize(saved.sections); ++section) {
    const std::string prefix = SavedState::set_prefix(saved.sections[static_cast<size_t>(first)].prefix, std::ssize(sets));
    const checkpoint::Section &each = saved.sections[static_cast<size_t>(section)];
    if (each.kind == SavedState::kSetKind && each.prefix == prefix) sets.push_back(section);
  }
  return sets;
}

SavedPlace place_of_states(const checkpoint::SaveDescription &saved, std::span<const int64_t> sets, int64_t replica, SavedPlace place) {
  const int64_t section = sets[static_cast<size_t>(replica) % sets.size()];
  const bool fits = place.section == sets[0] && place.tensor < std::ssize(saved.sections[static_cast<size_t>(section)].tensors);
  return fits ? SavedPlace{section, place.tensor} : place;
}

}  // namespace zero
