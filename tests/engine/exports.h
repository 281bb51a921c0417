/// @file Optimizers and exports by ranks of a test's world, and their files. Knows checkpoints and plain files; never what values should be.
#pragma once

#include "tests/engine/plain_files.h"
#include "tests/engine/saved_runs.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

/// Not in zero::test, where tests have functions of these names.
namespace zero::test::exports {

inline Manner export_manner(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 4096;
  manner.source = ZERO_SOURCE_SHARDS;
  return manner;
}

inline std::shared_ptr<Optimizer> begun(const std::shared_ptr<Group> &group, int64_t stage, Model model) {
  model.ranks = group->size();
  return begun_optimizer(group, model, export_manner(stage));
}

inline std::shared_ptr<Optimizer> sealed(const std::shared_ptr<Group> &group, int64_t stage, Model model) {
  model.ranks = group->size();
  return make_optimizer(group, model, export_manner(stage));
}

inline Status export_to(Checkpoint &checkpoint, const std::string &path, int32_t dtype = ZERO_EXPORT_AS_KEPT, zero_checkpoint_result *out = nullptr) {
  zero_checkpoint_result result{};
  const Status status = checkpoint.queue()->run(checkpoint.export_params(path, dtype, nullptr, &result));
  if (out != nullptr) *out = result;
  return status;
}

/// All files of an export, as one, by the index where there is one.
inline std::map<std::string, PlainTensor> read_export(const std::string &path, std::map<std::string, std::string> *metadata = nullptr) {
  if (std::filesystem::is_regular_file(path)) return read_plain(path, metadata);
  std::map<std::string, PlainTensor> all;
  for (const auto &entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".safetensors") all.merge(read_plain(entry.path().string(), metadata));
  }
  return all;
}

inline Model odd_model() {
  Model model = saved_model();
  model.counts.push_back(3);
  model.recipe.frozen_every = 4;
  return model;
}

}  // namespace zero::test::exports
