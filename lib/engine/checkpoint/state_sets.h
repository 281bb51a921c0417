/// @file Finds the sets of states in a save: one for each replica that makes its own steps. Knows
/// sections; never optimizers.
#pragma once

#include "checkpoint/description.h"
#include "engine/checkpoint/saved_names.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Returns the sections of all sets of an optimizer. `first` is its section and holds the first
/// set; returns {-1} if `first` is -1.
std::vector<int64_t> state_sets_of(const checkpoint::SaveDescription &saved, int64_t first);

/// Finds the states of a tensor for a replica. If the number of replicas has changed, replica r
/// gets set r modulo the number of saved sets.
SavedPlace place_of_states(const checkpoint::SaveDescription &saved, std::span<const int64_t> sets, int64_t replica, SavedPlace place);

}  // namespace zero
