/// @file CheckpointSettings: the options of a checkpoint, read once from its config at creation.
/// Knows the keys; never files.
#pragma once

#include "checkpoint/blocks.h"
#include "core/config.h"
#include "core/status.h"

#include <cstdint>

namespace zero {

struct CheckpointSettings {
  checkpoint::StreamOptions stream;
  int64_t keep;         ///< number of saves of the run that are kept, the newest ones; 0 = all
  int64_t file_nbytes;  ///< size beyond which no tensor is added to a model file
  int64_t progress_ms;
  bool converts;
  bool passes_missing;
  bool passes_extra;
  bool model_files;
  bool lazy;  ///< asynchronous saves read the optimizers instead of copies
};

/// Returns ZERO_E_UNSUPPORTED if the config sets a key that is not a checkpoint key.
Status read_checkpoint_settings(const Config &config, CheckpointSettings *out);

}  // namespace zero
