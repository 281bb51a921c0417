/// @file LoadPlan: what a rank reads of a save, and where that goes: names matched, dtypes compared, values told apart from bits that are
/// copied. The same decisions on all ranks. Knows descriptions and this rank's cuts; reads nothing.
#pragma once

#include "checkpoint/manifest.h"
#include "checkpoint/save_reader.h"
#include "engine/checkpoint/checkpoint_settings.h"
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

/// A slot of a save in fp32: its codes and, of 8-bit ones, their scales; of a bf16 parameter what completes it.
struct ValueSource {
  checkpoint::Wanted values;
  DType dtype = DType::f32;
  bool has_second = false;
  checkpoint::Wanted second;  ///< scales, or the remainder
  DType second_dtype = DType::f32;
};

/// A tensor whose values are worked out from what a save holds.
struct LoadedValues {
  const SavedState *state;
  int64_t id;
  ValueSource source;
  int32_t slot;           ///< 0: the parameter, as the optimizer keeps it; otherwise a state, or the average
  bool sets_average = false;  ///< with the parameter
};

struct LoadPlan {
  std::vector<checkpoint::Wanted> copied;
  std::vector<LoadTarget> targets;  ///< of `copied`, by their user's number
  std::vector<LoadedValues> values;
  std::vector<int64_t> sections;     ///< by optimizer: its section in the save; -1: none
  std::vector<bool> counts_copied;   ///< by optimizer: update counts are in the save
  int64_t missing = 0;
  int64_t extra = 0;
  int64_t converted = 0;
  std::string skipped;  ///< a line each
};

/// ZERO_E_CHECKPOINT where the save is of something else than what is here.
Status plan_load(const SavedThings &things, const Renames &renames, const CheckpointSettings &settings, int32_t part,
                 const checkpoint::SaveDescription &saved, LoadPlan *out);

/// The values of a source, given its bytes.
void widen_values(const ValueSource &source, const std::vector<std::byte> &values, const std::vector<std::byte> &second,
                  std::vector<float> *out);

}  // namespace zero
