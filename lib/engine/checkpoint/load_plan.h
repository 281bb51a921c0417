/// @file LoadPlan: the parts of a save that a rank reads, and their destinations. Matches names,
/// compares dtypes, and separates values from bits that are copied. All ranks make the same
/// decisions. Knows descriptions and this rank's cuts; reads nothing.
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

/// The destination of copied bytes.
struct LoadTarget {
  const SavedState *state = nullptr;  ///< nullptr: to memory
  int64_t id = 0;
  int32_t slot = 0;
  int64_t entry_nbytes = 1;
  std::byte *memory = nullptr;
};

/// The names of the source of a load, for error messages.
struct LoadedFrom {
  std::string all = "the save";
  /// File of each tensor, if there is only one section; empty: `all`.
  std::vector<std::string> of_tensor;
};

/// Carried values that were read.
struct LoadedCarried {
  CarriedState *state;
  double loss_scale;  ///< that of their gradients
};

struct LoadPlan {
  std::vector<checkpoint::Wanted> copied;
  std::vector<LoadTarget> targets;  ///< destination of each entry of `copied`, by its user number
  std::vector<LoadedValues> values;
  std::vector<EqualValues> equal;
  std::vector<int64_t> sections;  ///< by optimizer: its section in the save; -1: none
  /// By optimizer: the sections of all its sets of states, the first one included.
  std::vector<std::vector<int64_t>> sets;
  std::vector<bool> counts_copied;     ///< by optimizer: update counts are in the save
  std::vector<LoadedCarried> carried;  ///< the same kinds on all ranks
  std::vector<bool> gradients_copied;  ///< by optimizer: the save has gradients that wait
  int64_t missing = 0;
  int64_t extra = 0;
  int64_t converted = 0;
  std::string skipped;  ///< one line for each skipped name
};

/// Returns ZERO_E_CHECKPOINT if the save does not match the registered things.
Status plan_load(const SavedThings &things, const Renames &renames, const CheckpointSettings &settings, int32_t part,
                 const checkpoint::SaveDescription &saved, const LoadedFrom &from, LoadPlan *out);

}  // namespace zero
