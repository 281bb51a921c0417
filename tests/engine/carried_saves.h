/// @file Saves of what coded gradients carry, and runs that go on from them in other manners and worlds.
#pragma once

#include "tests/engine/coded_model.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/resumed_runs.h"
#include "tests/engine/saved_runs.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero::test {

inline constexpr int64_t kCarriedSteps = 6;

using Chosen = std::function<bool(int64_t id)>;

inline std::string dropped(const Model &model, const char *slot, const Chosen &chosen) {
  std::string lines;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    if (chosen(id)) lines += "dropped \"p" + std::to_string(id) + ":" + slot + "\"\n";
  }
  return lines;
}

/// Tensors of fewer elements than a line have velocities, but no residuals.
inline std::string dropped_residuals(const Model &model) {
  return dropped(model, "residual", [&](int64_t id) { return model.counts[static_cast<size_t>(id)] >= kLine; });
}

inline Model in_world(const Model &model, const CodedWorld &world) {
  Model other = model;
  other.ranks = world.ranks;
  other.recipe.replica_ranks = world.replica_ranks;
  return other;
}

/// A run that saves after each of three steps.
class ThreeSaves {
 public:
  ThreeSaves(const Model &model, const Manner &manner) { save_each_step(model, manner, folders_); }
  std::string last() const { return folders_.back().path(); }

 private:
  const std::vector<SaveFolder> folders_{3};
};

/// Loads a save with this model and saves again. Returns the lines of what was skipped.
inline std::string save_again(const Model &model, const Manner &manner, const std::string &from, const std::string &to) {
  std::string skipped;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(load(*checkpoint, from), "load");
    if (group->rank() == 0) skipped = checkpoint->skipped();
    expect_ok(save(*checkpoint, to), "save");
  });
  return skipped;
}

/// A run that drops `lines` of a save after three steps goes on as it does from the other, which lacks them.
inline void expect_dropped(const Model &model, const Manner &manner, const std::string &folder, const std::string &lines,
                           const std::string &plain) {
  Ends ends;
  Ends without;
  EXPECT_EQ(go_on(model, manner, folder, 3, kCarriedSteps, ends), lines);
  EXPECT_EQ(go_on(model, manner, plain, 3, kCarriedSteps, without), "");
  EXPECT_TRUE(ends == without) << model.text();
}

/// The runs differ that go on from two saves after three steps, of which the second lacks what the first has.
inline void expect_needed(const Model &model, const Manner &manner, const std::string &folder, const std::string &plain) {
  Ends kept;
  Ends without;
  EXPECT_EQ(go_on(model, manner, folder, 3, kCarriedSteps, kept), "");
  EXPECT_EQ(go_on(model, manner, plain, 3, kCarriedSteps, without), "");
  EXPECT_FALSE(kept == without) << "it makes no difference for\n" << model.text();
}

/// In worlds of four ranks with several micro-steps, of six with frozen and tied tensors. `number` chooses the manners: saved in one,
/// loaded in another.
inline void expect_saves_go_on_elsewhere(Model model, const CodedWorld &world, int64_t number) {
  if (world.ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
  if (world.ranks == 6) {
    model.recipe.frozen_every = 4;
    model.recipe.tied = true;
    model.counts.push_back(model.counts.front());
  }
  const Manner from = manner_of(number % 4, number % 2 == 0 ? 4096 : 1 << 20);
  Manner to = manner_of((number + 1 + number / 4) % 4, number % 3 == 0 ? 1024 : 16384);
  to.overlap = number % 2 == 0;
  if (world.replica_ranks == 2) to.shard_weights = number % 3 == 0 ? "0,1" : "1,3";
  expect_every_save_goes_on(model, from, to, kCarriedSteps);
}

/// A save of a dynamic loss scale, loaded by a run that has another, fixed one.
inline void expect_loss_scale_of_save_followed(const Model &model, const Manner &manner) {
  Ends expected;
  run_undisturbed(model, manner, kCarriedSteps, expected);
  Model scaled = model;
  scaled.recipe.loss_scale = 1024;
  scaled.recipe.overflow_step = 1000;  // the scale is dynamic
  const std::vector<SaveFolder> folders(1);
  save_each_step(scaled, manner, folders);
  Ends ends;
  EXPECT_EQ(go_on(model, manner, folders[0].path(), 1, kCarriedSteps, ends), "");
  EXPECT_TRUE(expected == ends) << model.text();
}

}  // namespace zero::test
