/// @file verify: every single bit that changes in memory is found and named, and nothing is found where nothing changed.
#include "tests/algorithms.h"
#include "tests/engine/flipped_bits.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace zero::test::verify_test {
namespace {

TEST(Verify, FindsEverySingleBitAndNamesIt) {
  const int64_t wanted = full_tests() ? 10'000 : 300;
  constexpr int64_t kTrials = 6 * 4 * 4;
  Every every(5);
  Flips shared;
  int64_t number = 0;
  int64_t taken = 0;
  for (const Recipe &recipe : flipped_recipes()) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (int64_t ranks = 1; ranks <= 4; ++ranks) {
        ++number;
        if (!every.next()) continue;
        Trial trial = make_trial(recipe, stage, ranks, number);
        trial.flips = wanted * number / kTrials - wanted * (number - 1) / kTrials;
        taken += trial.flips;
        run_world(ranks, [&](const std::shared_ptr<Group> &group) { flip_bits(group, trial, shared); });
        if (HasFailure()) return;
      }
    }
  }
  std::printf("bits flipped: %lld, missed or named wrongly: %lld; found by steps: %lld\n", static_cast<long long>(shared.flips),
              static_cast<long long>(shared.missed), static_cast<long long>(shared.by_step));
  EXPECT_GE(shared.flips, taken * 9 / 10);
}

TEST(Verify, FindsNothingWhereNothingChanged) {
  const int64_t models = full_tests() ? 400 : 40;
  const Names more = elementwise_names({"sgd", "adam", "adamw"});  // which random_model draws
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 70'001;
    Model model = random_model(seed, i % 4 + 1, 1 << 13);
    if (seed % 3 == 0) model.algorithm = more[seed / 3 % more.size()];
    model.recipe = random_recipe(seed, model.algorithm);
    model.recipe.tied = seed % 4 == 0;
    if (model.recipe.tied) model.counts.push_back(model.counts.front());
    Manner manner = random_manner(seed, model.ranks);
    manner.verify_every = i % 3 + 1;
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { change_nothing_else(group, model, manner, seed); });
    if (HasFailure()) return;
  }
}

TEST(Verify, ComesAfterBeginAndBetweenSteps) {
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    Model model;
    model.counts = {1000};
    const std::shared_ptr<Optimizer> optimizer = make_optimizer(group, model, Manner{});
    zero_verify_result result{};
    EXPECT_EQ(run_task(*optimizer, optimizer->verify(&result)).code(), ZERO_E_STATE);
    begin_training(*optimizer, model, Manner{});
    EXPECT_EQ(verified(*optimizer).found, ZERO_FINDING_NONE);
    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->verify(&result)).code(), ZERO_E_STATE);
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
  });
}

}  // namespace
}  // namespace zero::test::verify_test
