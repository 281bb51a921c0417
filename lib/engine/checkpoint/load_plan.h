/// @file LoadPlan: what a rank reads of a save, and where that goes: names matched, dtypes compared, values told apart from bits that are
/// copied. The same decisions on all ranks. Knows descriptions and this rank's cuts; reads nothing.
#pragma once

#include "checkpoint/manifest.h"
#include "engine/checkpoint/checkpoint_settings.h"
#include "engine/checkpoint/load_values.h"
#include "engine/checkpoint/renames.h"
#include "engine/checkpoint/saved_things.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// Where bytes that are copied go.
struct LoadTarget {
  const SavedState *state = nullptr;  ///< nullptr: to memory
  int64_t id = 0;
  int32_t slot = 0;
  int64_t entry_nbytes = 1;
  std::byte *memory = nullptr;
};

/// The names that texts give to the source of a load.
struct LoadedFrom {
  std::string all = "the save";
  std::vector<std::string> of_tensor;  ///< file of each tensor of the only section; empty: as `all`
};

struct LoadPlan {
  std::vector<checkpoint::Wanted> copied;
  std::vector<LoadTarget> targets;  ///< of `copied`, by their user's number
  std::vector<LoadedValues> values;
  std::vector<EqualValues> equal;
  std::vector<int64_t> sections;     ///< by optimizer: its section in the save; -1: none
  std::vector<std::vector<int64_t>> sets;  ///< by optimizer: the sections of all its sets of states, the first one's among them
  std::vector<bool> counts_copied;   ///< by optimizer: update counts are in the save
  int64_t missing = 0;
  int64_t extra = 0;
  int64_t converted = 0;
  std::string skipped;  ///< a line each
};

/// ZERO_E_CHECKPOINT where the save is of something else than what is here.
Status plan_load(const SavedThings &things, const Renames &renames, const CheckpointSettings &settings, int32_t part,
                 const checkpoint::SaveDescription &saved, const LoadedFrom &from, LoadPlan *out);

}  // namespace zero
