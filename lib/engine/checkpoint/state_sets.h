/// @file The sets of states in a save: one for each replica that made steps of its own. Knows sections; never optimizers.
#pragma once

#include "checkpoint/description.h"
#include "engine/checkpoint/saved_names.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The sections of all sets of the optimizer whose section is `first`, which holds the first of them; {-1} where there is no such section.
std::vector<int64_t> state_sets_of(const checkpoint::SaveDescription &saved, int64_t first);

/// Where the states of a tensor lie, for the replica of this number. Another number of replicas is dealt the saved sets in turn.
SavedPlace place_of_states(const checkpoint::SaveDescription &saved, std::span<const int64_t> sets, int64_t replica, SavedPlace place);

}  // namespace zero
