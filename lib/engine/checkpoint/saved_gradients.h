/// @file Gradients in saves: reduced ones that wait for their step (ZERO_KEY_GRAD_DELAY), a slot of
/// their tensors. Knows sections and this rank's parts; never files.
#pragma once

#include "checkpoint/description.h"
#include "engine/checkpoint/saved_names.h"
#include "engine/optimizer/saved_state.h"

#include <span>

namespace zero {

struct LoadPlan;

/// The name of the slot.
inline constexpr const char *kGradientSlot = "gradient";

/// Adds the gradients of an optimizer, the last in the plan so far, to a load: those of all tensors
/// that train here, or none. Gradients that are left out are listed as dropped. `places`, by
/// parameter: those of the save.
void plan_gradients(const SavedState &state, const checkpoint::SaveDescription &saved, std::span<const SavedPlace> places, LoadPlan *plan);

}  // namespace zero
