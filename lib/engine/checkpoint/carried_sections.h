/// @file Carried values in saves: what an optimizer's strategies of gradients carry from step to
/// step, in a section for each kind. A section has the elements of tensors in order, so that
/// buckets and shards of a save may differ from those here. Knows sections and this rank's parts;
/// never files.
#pragma once

#include "checkpoint/description.h"
#include "engine/checkpoint/saved_names.h"
#include "engine/optimizer/saved_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zero {

struct LoadPlan;

/// The kind of these sections. Libraries that know residuals alone pass over further prefixes.
inline constexpr const char *kCarriedKind = "residual";

/// Adds the sections of an optimizer with this prefix, but for values that are as at the beginning.
void describe_carried(const SavedState &state, const std::string &prefix, std::vector<checkpoint::Section> *out);
/// The values in a section of the optimizer with this prefix; nullopt: it has others.
std::optional<Carried> carried_in(const checkpoint::Section &section, const std::string &prefix);
/// Copies entries of such a section from `first` on. This rank must have them.
Status copy_carried(const SavedState &state, Carried kind, int64_t id, int64_t first, std::span<std::byte> out);

/// Adds the carried values of an optimizer, the last in the plan so far, to a load. They belong to
/// the ranks that made them: with another number of ranks or replicas, and where none are carried,
/// they are listed as dropped. `places`, by parameter: those of the save.
Status plan_carried(const SavedState &state, const std::string &prefix, const checkpoint::SaveDescription &saved,
                    std::span<const SavedPlace> places, LoadPlan *plan);

}  // namespace zero
