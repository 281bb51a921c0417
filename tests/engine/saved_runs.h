/// @file Runs whose bits do not depend on the number of ranks, saved into folders of their own and loaded by other worlds. Knows optimizers
/// and checkpoints; never what files look like.
#pragma once

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

/// A new folder, removed with all that is in it.
class SaveFolder {
 public:
  SaveFolder() {
    static std::atomic<int64_t> count{0};
    path_ = std::filesystem::path(testing::TempDir()) / ("zero_saves." + std::to_string(::getpid()) + "." + std::to_string(++count));
    std::filesystem::create_directories(path_);
  }
  SaveFolder(const SaveFolder &) = delete;
  ~SaveFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  /// Names of all that is there, in order.
  std::vector<std::string> entries() const;
  /// Those of committed saves, the newest last.
  std::vector<std::string> saves() const;

 private:
  std::filesystem::path path_;
};

/// Keys of a checkpoint.
using CheckpointKeys = std::vector<std::pair<int32_t, int64_t>>;

std::shared_ptr<Checkpoint> checkpoint_of(const std::shared_ptr<Optimizer> &optimizer, const CheckpointKeys &keys = {});
Status save(Checkpoint &checkpoint, const std::string &folder, zero_checkpoint_result *out = nullptr);
/// An asynchronous save, from the moment on at which steps may go on. `out` must outlive the operation.
std::shared_ptr<Operation> begin_save(Checkpoint &checkpoint, const std::string &folder, zero_checkpoint_result *out);
Status load(Checkpoint &checkpoint, const std::string &folder, int32_t part = ZERO_PART_ALL, zero_checkpoint_result *out = nullptr);

/// Rank 0 gives the gradients, all others give none, and nothing is divided: a step has the same bits in every world.
void step_alone(Optimizer &optimizer, const Model &model, int64_t step);
void step_alone(Optimizer &optimizer, const Model &model, int64_t first, int64_t last);

/// Model with these properties, of tensors whose sizes are awkward to cut.
Model saved_model();

}  // namespace zero::test
