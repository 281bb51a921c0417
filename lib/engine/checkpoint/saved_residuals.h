/// @file Residuals in saves: the coding losses of an optimizer's gradients, in two sections: those
/// of the sums that each replica sends, and those of their results. Both have the elements of
/// tensors in order, so that buckets and shards of a save may differ from those here. Knows
/// sections and this rank's parts; never files.
#pragma once

#include "checkpoint/description.h"
#include "engine/checkpoint/saved_names.h"
#include "engine/optimizer/saved_state.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

struct LoadPlan;

/// The kind of these sections.
inline constexpr const char *kResidualKind = "residual";

/// Adds the sections of an optimizer with this prefix, unless its residuals are zero.
void describe_residuals(const SavedState &state, const std::string &prefix, std::vector<checkpoint::Section> *out);
/// True for a section of the optimizer with this prefix.
bool is_of_residuals(const checkpoint::Section &section, const std::string &prefix);
/// Copies entries of such a section from `first` on. This rank must have them.
Status copy_residuals(const SavedState &state, const checkpoint::Section &section, int64_t tensor, int64_t first, std::span<std::byte> out);

/// Adds the residuals of an optimizer, the last in the plan so far, to a load. They belong to the
/// sums of one replica each: with another number of ranks or replicas, and where none are kept,
/// they are listed as dropped. `places`, by parameter: those of the save.
Status plan_residuals(const SavedState &state, const std::string &prefix, const checkpoint::SaveDescription &saved,
                      std::span<const SavedPlace> places, LoadPlan *plan);

}  // namespace zero
