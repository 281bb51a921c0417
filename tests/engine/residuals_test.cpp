/// @file Residuals of coded gradients: nothing is lost, nothing is kept of a skipped step, and the bits are those of every manner.
#include "tests/engine/coded_model.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::residuals_test {
namespace {

using World = CodedWorld;
constexpr std::array<World, 4> kWorlds = {{{2, 1}, {4, 2}, {3, 1}, {6, 2}}};

Model model_of(const World &world, int64_t code) {
  Model model = coded_model(world, code);
  model.recipe.residual = true;
  return model;
}

/// Gradient descent, whose parameters show the sum of all gradients.
Model descent(const World &world, int64_t code) {
  Model model = model_of(world, code);
  model.algorithm = "sgd";
  model.weight_decay = 0;
  return model;
}

TEST(Residuals, LeaveTheSameBitsInEveryManner) {
  const int64_t manners = full_tests() ? 24 : few_tests() ? 2 : 5;
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      Model model = model_of(world, code);
      model.steps = 6;
      model.recipe.overflow_step = 3;
      model.recipe.clip_norm = code == ZERO_CODE_I8 ? 0.5 : 0;
      if (code == ZERO_CODE_F8) model.recipe.dtype = DType::bf16;
      if (code == ZERO_CODE_I4) model.recipe.flush_period = 3;
      if (world.ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        EXPECT_EQ(expect_same_in_every_manner(group, model, static_cast<uint64_t>(code * 100), manners).skipped, 1);
      });
    }
  }
}

/// In float64: first values minus the rate times the mean gradients of all steps and their micro-steps.
std::vector<double> expected_params(const Model &model, int64_t steps) {
  const int64_t micro_steps = steps * std::max<int64_t>(std::ssize(model.recipe.micro_steps), 1);
  std::vector<double> values;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) {
      double sum = 0;
      for (int64_t micro = 0; micro < micro_steps; ++micro) {
        for (int64_t rank = 0; rank < model.ranks; ++rank) sum += static_cast<double>(gradient_at(model, micro, rank, id, k));
      }
      values.push_back(first_value_at(model, id, k) - static_cast<double>(0.01F) * sum / static_cast<double>(model.ranks));
    }
  }
  return values;
}

double largest_difference(const std::vector<float> &values, const std::vector<double> &expected) {
  double largest = 0;
  EXPECT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - expected[i]));
  return largest;
}

/// What was applied and what was given differ by the newest residuals, however many steps were made; after a step in full by roundings.
TEST(Residuals, LoseNothing) {
  const int64_t steps = full_tests() ? 1000 : few_tests() ? 20 : 60;
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      for (const bool in_full : {false, true}) {
        Model model = descent(world, code);
        model.recipe.flush_period = in_full ? 20 : 0;
        if (world.ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST};
        const std::vector<double> expected = expected_params(model, steps);
        const double quantum = code == ZERO_CODE_I4 ? 1.0 / 14 : code == ZERO_CODE_I8 ? 1.0 / 254 : 1.0 / 16;
        const double roundings = 2e-7 * static_cast<double>(steps);
        run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
          Manner manner;
          manner.stage = code;
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          for (int64_t step = 0; step < steps; ++step) (void)train_step(*optimizer, model, manner, step);
          const double difference = largest_difference(read_slot(*optimizer, model, ZERO_SLOT_PARAM), expected);
          EXPECT_LE(difference, roundings + (in_full ? 0 : 0.01 * 2.5 * quantum)) << model.text();
        });
      }
    }
  }
}

/// A run in which a step is skipped goes on as one that never made it.
TEST(Residuals, AreKeptByASkippedStep) {
  for (const World &world : kWorlds)
    expect_skipped_steps_leave_nothing(descent(world, ZERO_CODE_I4), std::to_string(world.ranks) + " ranks");
}

/// A step that is reduced and gathered without apply leaves residuals as they were.
TEST(Residuals, AreKeptByAStepThatIsNotApplied) {
  for (const World &world : kWorlds) {
    const Model model = descent(world, ZERO_CODE_I4);
    for (int64_t stage = 0; stage < 4; ++stage) {
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = stage;
        const auto params_of = [&](bool drops) {
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          for (int64_t step = 0; step < 4; ++step) {
            if (drops && step == 2) {
              give_gradients(*optimizer, model, manner, 7);
              expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
              expect_ok(run_task(*optimizer, optimizer->gather(nullptr)), "gather");
            }
            (void)train_step(*optimizer, model, manner, step);
          }
          return read_slot(*optimizer, model, ZERO_SLOT_PARAM);
        };
        EXPECT_EQ(differing(params_of(true), params_of(false)), 0) << "stage " << stage;
      });
    }
  }
}

TEST(Residuals, FollowTheLossScale) {
  for (const World &world : kWorlds) expect_loss_scale_followed(descent(world, ZERO_CODE_I4), std::to_string(world.ranks) + " ranks");
}

TEST(Residuals, WithoutEffectAreRefusedByName) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const std::pair<int32_t, int64_t> apart{ZERO_KEY_REPLICA_RANKS, 1};
    const std::pair<int32_t, int64_t> coded{ZERO_KEY_GRAD_CODE, ZERO_CODE_I4};
    const std::pair<int32_t, int64_t> residual{ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32};
    expect_refused(group, {apart, residual}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_RESIDUAL is set, but has no effect");
    expect_refused(group, {apart, {ZERO_KEY_FLUSH_PERIOD, 4}}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_FLUSH_PERIOD is set, but has no effect");
    expect_refused(group, {apart, coded, residual, {ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED}}, ZERO_E_UNSUPPORTED,
                   "would be sent and not applied");
  });
}

/// As replicas.h says: 8 bytes for each of a rank's sums, and for each of their results.
TEST(Residuals, TakeTheMemoryOfTheFormula) {
  for (const World &world : kWorlds) {
    Model with = descent(world, ZERO_CODE_I4);
    with.counts = {40000, 3000};
    Model without = with;
    without.recipe.residual = false;
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = 1;
      const auto workspace_of = [&](const Model &model) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        MemoryUse use{};
        expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &use), "memory");
        return use.peak_nbytes;
      };
      const double own = 43000.0 / static_cast<double>(world.replica_ranks);
      const double replicas = static_cast<double>(world.ranks) / static_cast<double>(world.replica_ranks);
      // Cuts are whole lines.
      EXPECT_NEAR(static_cast<double>(workspace_of(with) - workspace_of(without)), 8 * own + 8 * own / replicas, 4 * 8 * 256);
    });
  }
}

TEST(Residuals, MustBeWantedByAllRanksAlike) {
  for (const int32_t key : {ZERO_KEY_RESIDUAL, ZERO_KEY_FLUSH_PERIOD}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      expect_ok(config.set_i64(ZERO_KEY_REPLICA_RANKS, 1), "set_i64");
      expect_ok(config.set_i64(ZERO_KEY_GRAD_CODE, ZERO_CODE_I8), "set_i64");
      expect_ok(config.set_i64(key, group->rank()), "set_i64");
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, config, &optimizer), "create");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
      EXPECT_TRUE(contains(status, find_key(key)->name)) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::residuals_test
