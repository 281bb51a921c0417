/// @file Runs that are saved and go on, and what their ranks end with. Knows optimizers and saves; never why bits should agree.
#pragma once

#include "tests/engine/saved_runs.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

inline Manner manner_of(int64_t stage, int64_t bucket_nbytes) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = bucket_nbytes;
  manner.source = ZERO_SOURCE_SHARDS;
  return manner;
}

/// What each rank ends with.
class Ends {
 public:
  void put(const Optimizer &optimizer, std::vector<std::byte> slots) {
    const std::lock_guard lock(mutex_);
    slots_[optimizer.group()->rank()] = std::move(slots);
  }
  /// Once all ranks have put theirs.
  const std::vector<std::byte> &of(const Optimizer &optimizer) const { return slots_.at(optimizer.group()->rank()); }
  bool operator==(const Ends &other) const { return slots_ == other.slots_; }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::vector<std::byte>> slots_;
};

/// Goes on from a save after `first` steps. Returns the lines of what was skipped, on rank 0.
inline std::string go_on(const Model &model, const Manner &manner, const std::string &folder, int64_t first, int64_t last, Ends &ends) {
  std::string skipped;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint, folder, ZERO_PART_ALL, &result), "load");
    EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0);
    expect_same_on_all_ranks(*optimizer);
    train_steps(*optimizer, model, manner, first, last);
    ends.put(*optimizer, read_slots(*optimizer, model));
    if (group->rank() == 0) skipped = checkpoint->skipped();
  });
  return skipped;
}

inline void run_undisturbed(const Model &model, const Manner &manner, int64_t steps, Ends &ends) {
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, steps);
    ends.put(*optimizer, read_slots(*optimizer, model));
  });
}

/// Saves after each of the steps, into one folder after another.
inline void save_each_step(const Model &model, const Manner &manner, const std::vector<SaveFolder> &folders) {
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    for (int64_t step = 0; step < std::ssize(folders); ++step) {
      (void)train_step(*optimizer, model, manner, step);
      expect_ok(save(*checkpoint, folders[static_cast<size_t>(step)].path()), "save");
    }
  });
}

/// Saved after any step in one manner, and loaded in another: the bits of the undisturbed run.
inline void expect_every_save_goes_on(const Model &model, const Manner &from, const Manner &to, int64_t steps) {
  Ends expected;
  run_undisturbed(model, from, steps, expected);
  const std::vector<SaveFolder> folders(static_cast<size_t>(steps - 1));
  save_each_step(model, from, folders);
  for (int64_t saved = 1; saved < steps; saved += few_tests() ? 3 : 1) {
    Ends ends;
    EXPECT_EQ(go_on(model, to, folders[static_cast<size_t>(saved - 1)].path(), saved, steps, ends), "");
    EXPECT_TRUE(expected == ends) << "saved after step " + std::to_string(saved) << "\n" << model.text();
  }
}

}  // namespace zero::test
