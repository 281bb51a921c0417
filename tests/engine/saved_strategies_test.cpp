/// @file Every strategy of replicas goes on from a save in its middle.
#include "tests/engine/coded_model.h"
#include "tests/engine/resumed_runs.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zero::test::saved_strategies_test {
namespace {

constexpr int64_t kSteps = 6;

struct Strategy {
  const char *name;
  Recipe recipe;
  std::array<int64_t, 2> stages = {0, 3};  ///< first and last
};

std::vector<Strategy> strategies() {
  constexpr std::array<int64_t, 2> kGathering = {1, 2};
  return {
      {"hybrid sharding", {}},
      {"coded gradients", {.grad_code = ZERO_CODE_I8}},
      {"residuals", {.grad_code = ZERO_CODE_I4, .residual = true}},
      {"residuals, steps in full", {.grad_code = ZERO_CODE_F8, .residual = true, .flush_period = 3}},
      {"local steps", {.sync_period = 3, .outer_lr = 0.7, .outer_momentum = 0.9}},
      {"local steps, averages", {.average = true, .sync_period = 2}},
      {"coded synchronisations", {.sync_period = 3, .outer_lr = 0.7, .outer_momentum = 0.9, .sync_code = ZERO_CODE_I4}},
      {"local steps after steps together", {.sync_period = 2, .sync_after = 3, .outer_momentum = 0.5}},
      {"local steps after residuals", {.sync_period = 2, .sync_after = 3, .grad_code = ZERO_CODE_I4, .residual = true}},
      {"coded synchronisations after residuals",
       {.sync_period = 3, .sync_after = 2, .grad_code = ZERO_CODE_I8, .sync_code = ZERO_CODE_I8, .residual = true}},
      {"rounds", {.sync_period = 2, .ring = true}},
      {"rounds after residuals", {.sync_period = 2, .sync_after = 2, .ring = true, .grad_code = ZERO_CODE_I4, .residual = true}},
      {"gathered differences", {.gather_code = ZERO_CODE_I4}, kGathering},
      {"gathered differences, residuals", {.grad_code = ZERO_CODE_I4, .gather_code = ZERO_CODE_I8, .residual = true}, kGathering},
      {"gathered differences, local steps", {.sync_period = 3, .outer_momentum = 0.9, .gather_code = ZERO_CODE_I8}, kGathering},
  };
}

/// Saved after any step, where replicas have met for it, and loaded in another stage. One replica skips a step.
TEST(SavedStrategies, GoOnInTheMiddleWithTheBitsOfTheUndisturbedRun) {
  for (const Strategy &strategy : strategies()) {
    Model model = coded_model({4, 2}, ZERO_CODE_NONE);
    model.recipe = strategy.recipe;
    model.recipe.replica_ranks = 2;
    model.recipe.overflow_step = 1;
    model.recipe.loss_scale = 4;
    for (int64_t saved = 1; saved < kSteps; saved += few_tests() ? 3 : 1) {
      const int64_t stages = strategy.stages[1] - strategy.stages[0] + 1;
      const Manner from = manner_of(strategy.stages[0] + saved % stages, 4096);
      const Manner to = manner_of(strategy.stages[1] - saved % stages, 1024);
      const SaveFolder folder;
      Ends expected;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, from);
        train_steps(*optimizer, model, from, 0, saved);
        if (model.recipe.sync_period > 1) expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
        expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
        train_steps(*optimizer, model, from, saved, kSteps);
        expected.put(*optimizer, read_slots(*optimizer, model));
      });
      Ends ends;
      EXPECT_EQ(go_on(model, to, folder.path(), saved, kSteps, ends), "");
      EXPECT_TRUE(expected == ends) << std::string(strategy.name) + " saved after step " + std::to_string(saved) << "\n" << model.text();
    }
  }
}

}  // namespace
}  // namespace zero::test::saved_strategies_test
