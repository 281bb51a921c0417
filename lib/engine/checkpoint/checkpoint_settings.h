/// @file CheckpointSettings: what a checkpoint was told once, at creation, by its config. Knows the keys; never files.
#pragma once

#include "checkpoint/blocks.h"
#include "core/config.h"
#include "core/status.h"

#include <cstdint>

namespace zero {

struct CheckpointSettings {
  checkpoint::StreamOptions stream;
  int64_t keep;         ///< newest saves of the run; 0 = all
  int64_t file_nbytes;  ///< of model files
  int64_t progress_ms;
  bool converts;
  bool passes_missing;
  bool passes_extra;
  bool model_files;
  bool lazy;  ///< snapshots of asynchronous saves
};

/// Keys of other kinds are ZERO_E_UNSUPPORTED.
Status read_checkpoint_settings(const Config &config, CheckpointSettings *out);

}  // namespace zero
