/// @file Reads the config of a checkpoint.
#include "engine/checkpoint/checkpoint_settings.h"

namespace zero {

Status read_checkpoint_settings(const Config &config, CheckpointSettings *out) {
  for (const KeyInfo &info : all_keys()) {
    ZERO_CHECK(!config.is_set(info.key) || (info.key >= 600 && info.key < 700), ZERO_E_UNSUPPORTED,
               "%s is not a key of a checkpoint; use keys 600 .. 699", info.name);
  }
  const auto is_on = [&config](int32_t key) { return config.i64(key) != 0; };
  out->stream.staging_nbytes = config.i64(ZERO_KEY_CHECKPOINT_STAGING_BYTES);
  out->stream.direct = is_on(ZERO_KEY_CHECKPOINT_DIRECT);
  out->stream.sync = is_on(ZERO_KEY_CHECKPOINT_SYNC);
  out->keep = config.i64(ZERO_KEY_CHECKPOINT_KEEP);
  out->file_nbytes = config.i64(ZERO_KEY_CHECKPOINT_FILE_BYTES);
  out->progress_ms = config.i64(ZERO_KEY_CHECKPOINT_PROGRESS_MS);
  out->converts = is_on(ZERO_KEY_CHECKPOINT_CONVERT);
  out->passes_missing = is_on(ZERO_KEY_CHECKPOINT_MISSING);
  out->passes_extra = is_on(ZERO_KEY_CHECKPOINT_EXTRA);
  out->lazy = config.i64(ZERO_KEY_CHECKPOINT_SNAPSHOT) == ZERO_SNAPSHOT_LAZY;
  out->model_files = is_on(ZERO_KEY_CHECKPOINT_MODEL_FILES);
  return {};
}

}  // namespace zero
