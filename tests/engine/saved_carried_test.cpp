/// @file Velocities of momentum correction, and residuals and factors of low rank, in saves: a run goes on with the bits of the one that
/// never stopped, and what does not fit is dropped and told.
#include "tests/engine/carried_saves.h"
#include "tests/engine/low_rank_rule.h"
#include "tests/engine/sparse_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::saved_carried_test {
namespace {

constexpr SparseCode kTop = {ZERO_CODE_TOP, 8, 0.9};

std::string dropped_velocities(const Model &model) {
  return dropped(model, "velocity", [&](int64_t id) { return model.counts[static_cast<size_t>(id)] > 0; });
}

Chosen factored(const Model &model, int64_t rank) {
  return [&model, rank](int64_t id) { return is_factored(model, id, rank); };
}
std::string dropped_factors(const Model &model, int64_t rank) { return dropped(model, "factor", factored(model, rank)); }

/// The same training with another code.
Model with_code(const Model &model, int64_t code, bool residual, std::vector<std::pair<int32_t, int64_t>> keys = {}) {
  Model other = model;
  other.hyper = {model.hyper.front()};
  other.recipe.grad_code = code;
  other.recipe.residual = residual;
  other.recipe.keys = std::move(keys);
  return other;
}

/// With a skipped step, changes of the loss scale, steps in full and several micro-steps; saved in one manner, loaded in another.
TEST(SavedVelocities, GoOnWithTheBitsOfTheUndisturbedRun) {
  int64_t number = 0;
  for (const CodedWorld &world : {CodedWorld{2, 1}, {4, 2}, {3, 1}, {6, 2}}) {
    for (const SparseCode &code : {kTop, SparseCode{ZERO_CODE_TOP, 64, 0.5}, SparseCode{ZERO_CODE_TOP, 1, 0.9, 2}}) {
      Model model = sparse_model(world, code);
      model.recipe.overflow_step = 2;
      model.recipe.loss_scale = 8;
      if (code.kept == 64) model.recipe.flush_period = 4;
      if (code.kept == 64) model.recipe.dtype = DType::bf16;
      if (code.kept == 1) {
        model.algorithm = "adamw";
        model.hyper.front() = {ZERO_KEY_LR, 0.01};
      }
      expect_saves_go_on_elsewhere(model, world, number++);
    }
  }
}

TEST(SavedVelocities, AreDroppedByOtherWorlds) {
  const Model model = sparse_model({4, 2}, kTop);
  const Manner manner = manner_of(2, 4096);
  const ThreeSaves saves(model, manner);
  const SaveFolder plain;
  const std::string all = dropped_residuals(model) + dropped_velocities(model);
  EXPECT_EQ(save_again(with_code(model, ZERO_CODE_I8, false), manner, saves.last(), plain.path()), all);
  for (const CodedWorld &to : {CodedWorld{2, 1}, {4, 1}, {6, 2}, {8, 4}})
    expect_dropped(in_world(model, to), manner, saves.last(), all, plain.path());
}

/// Residuals stay, and a save without velocities begins with none.
TEST(SavedVelocities, AreDroppedByOtherCodesAndWithoutTheKey) {
  const Model model = sparse_model({4, 2}, kTop);
  const Manner manner = manner_of(1, 4096);
  const ThreeSaves saves(model, manner);
  const SaveFolder residuals;
  const Model without = with_code(model, ZERO_CODE_TOP, true, {{ZERO_KEY_CODE_TOP, 8}});
  EXPECT_EQ(save_again(without, manner, saves.last(), residuals.path()), dropped_velocities(model));
  for (const Model &other : {without, with_code(model, ZERO_CODE_I4, true), with_code(model, ZERO_CODE_SIGN, true)})
    expect_dropped(other, manner, saves.last(), dropped_velocities(model), residuals.path());
  expect_needed(model, manner, saves.last(), residuals.path());
}

TEST(SavedVelocities, FollowTheLossScaleOfTheRunThatLoadsThem) {
  for (const CodedWorld &world : {CodedWorld{2, 1}, {4, 2}})
    expect_loss_scale_of_save_followed(sparse_model(world, kTop), manner_of(2, 4096));
}

TEST(SavedVelocities, AreInASaveAfterAStepInFull) {
  Model model = sparse_model({4, 2}, kTop);
  model.recipe.flush_period = 2;
  const std::vector<SaveFolder> folders(4);
  save_each_step(model, manner_of(1, 4096), folders);
  for (int64_t saved = 1; saved <= std::ssize(folders); ++saved) {
    Ends ends;
    EXPECT_EQ(go_on(in_world(model, {2, 1}), manner_of(1, 4096), folders[static_cast<size_t>(saved - 1)].path(), saved, saved + 1, ends),
              (saved % 2 == 0 ? "" : dropped_residuals(model)) + dropped_velocities(model));
  }
}

/// Replicas part after two steps, and are together again after the fourth: nothing will use the velocities.
TEST(SavedVelocities, AreNotInASaveOfReplicasThatHaveParted) {
  Model model = sparse_model({4, 2}, kTop);
  model.recipe.sync_after = 2;
  model.recipe.sync_period = 2;
  const Manner manner = manner_of(1, 4096);
  const SaveFolder folder;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, 4);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
  });
  Ends ends;
  EXPECT_EQ(go_on(in_world(model, {2, 1}), manner, folder.path(), 4, 5, ends), "");
}

/// As for velocities, with matrices that buckets do not cut, but that other tensors share.
TEST(SavedLowRank, GoesOnWithTheBitsOfTheUndisturbedRun) {
  int64_t number = 0;
  for (const int64_t ranks : {2, 3, 4}) {
    for (const int64_t rank : {1, 2, 4}) {
      Model model = low_rank_model(ranks, rank);
      model.recipe.overflow_step = 2;
      model.recipe.loss_scale = 8;
      if (rank == 1) model.recipe.flush_period = 4;
      if (rank == 2) model.recipe.keys.emplace_back(ZERO_KEY_CODE_AFTER, 2);
      if (rank == 4) {
        model.algorithm = ranks == 3 ? "muon" : "adamw";
        model.hyper.front() = {ZERO_KEY_LR, 0.01};
      }
      if (ranks == 2) {
        model.recipe.frozen_every = 5;
        model.recipe.tied = true;
        model.counts.push_back(model.counts.front());
        model.rows.push_back(model.rows.front());
      }
      if (ranks == 4) model.recipe.dtype = DType::bf16;
      if (ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
      const Manner from = manner_of(number % 4, number % 2 == 0 ? 4096 : 1 << 20);
      Manner to = manner_of((number + 1 + number / 4) % 4, number % 3 == 0 ? 1024 : 65536);
      to.overlap = number % 2 == 0;
      ++number;
      expect_every_save_goes_on(model, from, to, kCarriedSteps);
    }
  }
}

TEST(SavedLowRank, IsDroppedByOtherWorlds) {
  constexpr int64_t kRank = 2;
  const Model model = low_rank_model(4, kRank);
  const Manner manner = manner_of(2, 4096);
  const ThreeSaves saves(model, manner);
  const SaveFolder plain;
  const std::string all = dropped(model, "residual", factored(model, kRank)) + dropped_factors(model, kRank);
  EXPECT_EQ(save_again(with_code(model, ZERO_CODE_I8, false), manner, saves.last(), plain.path()), all);
  for (const int64_t ranks : {2, 3, 8}) expect_dropped(in_world(model, {ranks, 1}), manner, saves.last(), all, plain.path());
  expect_needed(model, manner, saves.last(), plain.path());
}

/// By tensor, the largest difference of a parameter from those of descent by the sum of all gradients of so many steps.
std::vector<double> waiting(Optimizer &optimizer, const Model &model, int64_t steps) {
  TensorValues expected = first_values_of(model);
  const std::vector<float> params = read_slot(optimizer, model, ZERO_SLOT_PARAM);
  std::vector<double> largest;
  size_t at = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<double> &values = expected[static_cast<size_t>(id)];
    std::vector<double> sum(values.size());
    for (int64_t step = 0; step < steps; ++step) add_gradients(model, step, id, sum);
    largest.push_back(0);
    for (size_t k = 0; k < sum.size(); ++k)
      largest.back() = std::max(largest.back(), std::abs(params[at++] - (values[k] - sum[k] / static_cast<double>(model.ranks))));
  }
  return largest;
}

/// Loaded after three steps, of which the save kept residuals of the tensors that travel as factors of `rank`. The next step is in full:
/// nothing was lost of those that are chosen.
void expect_kept(const Model &loaded, int64_t rank, const std::string &folder, const std::string &lines, const Chosen &chosen) {
  Model model = loaded;
  model.recipe.flush_period = 4;
  const Manner manner = manner_of(3, 4096);
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(load(*checkpoint, folder), "load");
    EXPECT_EQ(checkpoint->skipped(), lines);
    const std::vector<double> before = waiting(*optimizer, model, 3);
    train_steps(*optimizer, model, manner, 3, 4);
    const std::vector<double> after = waiting(*optimizer, model, 4);
    for (int64_t id = 0; id < model.tensors(); ++id) {
      if (!is_factored(model, id, rank)) continue;
      EXPECT_GT(before[static_cast<size_t>(id)], 0.01) << id;
      EXPECT_EQ(after[static_cast<size_t>(id)] < 1e-4, chosen(id)) << id << " " << after[static_cast<size_t>(id)];
    }
  });
}

/// Residuals are those of a rank's gradients, whatever the code; factors of another rank begin anew.
TEST(SavedLowRank, LeavesResidualsToOtherRanksOfFactorsAndToOtherCodes) {
  constexpr int64_t kRank = 2;
  constexpr int64_t kHigher = 9;  // too high for two of the matrices
  const Model model = low_rank_model(4, kRank);
  const ThreeSaves saves(model, manner_of(1, 16384));
  const std::string folder = saves.last();
  const auto too_small = [&](int64_t id) { return is_factored(model, id, kRank) && !is_factored(model, id, kHigher); };
  const std::string small = dropped(model, "residual", too_small);
  EXPECT_EQ(std::count(small.begin(), small.end(), '\n'), 2);
  expect_kept(with_code(model, ZERO_CODE_LOW_RANK, true, {{ZERO_KEY_CODE_RANK, kHigher}}), kRank, folder,
              small + dropped_factors(model, kRank), factored(model, kHigher));
  for (const int64_t code : {ZERO_CODE_I8 + 0, ZERO_CODE_TOP + 0})
    expect_kept(with_code(model, code, true), kRank, folder, dropped_factors(model, kRank), [](int64_t) { return true; });
}

/// Those of other codes are also of results, which low rank does not code.
TEST(SavedLowRank, DropsResidualsOfOtherCodes) {
  const Model model = low_rank_model(4, 2);
  const Model coded = with_code(model, ZERO_CODE_I4, true);
  const Manner manner = manner_of(2, 4096);
  const ThreeSaves saves(coded, manner);
  const SaveFolder plain;
  EXPECT_EQ(save_again(with_code(model, ZERO_CODE_I8, false), manner, saves.last(), plain.path()), dropped_residuals(model));
  expect_dropped(model, manner, saves.last(), dropped_residuals(model), plain.path());
}

TEST(SavedLowRank, FollowsTheLossScaleOfTheRunThatLoadsIt) {
  for (const int64_t ranks : {2, 3}) expect_loss_scale_of_save_followed(low_rank_model(ranks, 3), manner_of(1, 4096));
}

TEST(SavedLowRank, HasFactorsAloneAfterAStepInFull) {
  constexpr int64_t kRank = 2;
  Model model = low_rank_model(4, kRank);
  model.recipe.flush_period = 2;
  const std::vector<SaveFolder> folders(4);
  save_each_step(model, manner_of(1, 4096), folders);
  for (int64_t saved = 1; saved <= std::ssize(folders); ++saved) {
    Ends ends;
    EXPECT_EQ(go_on(in_world(model, {2, 1}), manner_of(1, 4096), folders[static_cast<size_t>(saved - 1)].path(), saved, saved + 1, ends),
              (saved % 2 == 0 ? "" : dropped(model, "residual", factored(model, kRank))) + dropped_factors(model, kRank));
  }
}

}  // namespace
}  // namespace zero::test::saved_carried_test
