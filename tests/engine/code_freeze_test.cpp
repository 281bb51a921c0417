/// @file 1-bit Adam: the bits of a plain program in all stages, second moments that stay, nothing kept of a skipped step, saved runs that
/// go on, and refusals.
#include "group/collectives.h"
#include "tests/engine/freeze_rule.h"
#include "tests/engine/resumed_runs.h"
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::code_freeze_test {
namespace {

using World = CodedWorld;
/// Two to four replicas of one and of two ranks.
constexpr std::array<World, 6> kWorlds = {{{2, 1}, {3, 1}, {4, 1}, {4, 2}, {6, 2}, {8, 2}}};
constexpr int64_t kAfter = 3;
constexpr SparseCode kSign{.number = ZERO_CODE_SIGN, .after = kAfter};
constexpr SparseCode kTop{.number = ZERO_CODE_TOP, .kept = 8, .after = kAfter};

std::string name_of(const World &world, const SparseCode &code) {
  return std::to_string(world.ranks) + " ranks, " + std::to_string(world.replica_ranks) + " each, code " + std::to_string(code.number);
}

Model without_codes(Model model) {
  model.recipe.grad_code = ZERO_CODE_NONE;
  model.recipe.residual = false;
  model.recipe.keys = {};
  return model;
}

FreezeRule::Ends ends_of(Optimizer &optimizer, const Model &model) {
  return {read_slot(optimizer, model, ZERO_SLOT_PARAM), read_slot(optimizer, model, ZERO_SLOT_FIRST_MOMENT),
          read_slot(optimizer, model, ZERO_SLOT_SECOND_MOMENT)};
}

void expect_ends(Optimizer &optimizer, const Model &model, const FreezeRule::Ends &expected, const std::string &what) {
  const FreezeRule::Ends ends = ends_of(optimizer, model);
  EXPECT_EQ(differing(ends.params, expected.params), 0) << "parameters, " << what;
  EXPECT_EQ(differing(ends.first, expected.first), 0) << "first moments, " << what;
  EXPECT_EQ(differing(ends.second, expected.second), 0) << "second moments, " << what;
}

/// Beta1 differs by set, and changes before step 6.
void expect_rule(const World &world, const SparseCode &code, int64_t flush_period, int64_t first_stage, int64_t last_stage) {
  constexpr int64_t kSteps = 10;
  Model model = freeze_model(world, code);
  model.recipe.flush_period = flush_period;
  model.recipe.sets = 2;
  const auto beta1 = [](int64_t set, int64_t step) { return set == 1 ? 0.8 : step < 6 ? 0.9 : 0.95; };
  FreezeRule rule(model, code);
  std::vector<FreezeRule::Ends> expected;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t set = 0; set < 2; ++set) rule.set_beta1(set, beta1(set, step));
    rule.step(step);
    expected.push_back(rule.ends());
  }
  EXPECT_EQ(rule.second_updates(), kAfter);
  if (world.ranks == 2) {
    EXPECT_GT(rule.still_count(), 0);
  }
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    for (int64_t stage = first_stage; stage <= last_stage; ++stage) {
      Manner manner = manner_of(stage, stage % 2 == 0 ? 4096 : 1 << 20);
      manner.splits = stage == 1;
      manner.overlap = stage > 1;
      const auto optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < kSteps; ++step) {
        for (int64_t set = 0; set < 2; ++set) expect_ok(optimizer->set_f64(set, ZERO_KEY_BETA1, beta1(set, step)), "set_f64");
        (void)train_step(*optimizer, model, manner, step);
        if (step == kAfter - 1 || step == kAfter || step == 6 || step + 1 == kSteps)
          expect_ends(*optimizer, model, expected[static_cast<size_t>(step)],
                      name_of(world, code) + ", stage " + std::to_string(stage) + ", step " + std::to_string(step));
      }
      expect_same_on_all_ranks(*optimizer);
    }
  });
}

TEST(CodeFreeze, HasTheBitsOfAPlainProgramInAllStages) {
  for (const World &world : kWorlds) {
    expect_rule(world, kSign, 0, 0, 3);
    expect_rule(world, kTop, 7, world.ranks % 4, world.ranks % 4);
  }
}

TEST(CodeFreeze, TakesTensorsOfAnySize) {
  for (const std::vector<int64_t> &counts : std::vector<std::vector<int64_t>>{{0}, {1}, {255}, {256}, {257}, {0, 256, 5}}) {
    for (const World &world : {World{2, 1}, World{8, 2}}) {
      Model model = freeze_model(world, kSign);
      model.counts = counts;
      FreezeRule rule(model, kSign);
      for (int64_t step = 0; step < 6; ++step) rule.step(step);
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        const Manner manner = manner_of(counts.front() % 4, 1 << 20);
        const auto optimizer = begun_optimizer(group, model, manner);
        train_steps(*optimizer, model, manner, 0, 6);
        expect_ends(*optimizer, model, rule.ends(), std::to_string(counts.front()) + " elements");
      });
    }
  }
}

/// Before codes begin all is as without them. Then the second moment stays, and a line of signs leaves first moments of one magnitude: they
/// are what was decoded.
TEST(CodeFreeze, LeavesTheWarmUpPlainAndKeepsSecondMoments) {
  for (const World &world : {World{2, 1}, World{4, 2}}) {
    const Model coded = freeze_model(world, kSign);
    const Model plain = without_codes(coded);
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = manner_of(2, 4096);
      const auto with = begun_optimizer(group, coded, manner);
      const auto without = begun_optimizer(group, plain, manner);
      for (int64_t step = 0; step < kAfter; ++step) {
        (void)train_step(*with, coded, manner, step);
        (void)train_step(*without, plain, manner, step);
        EXPECT_EQ(read_slots(*with, coded), read_slots(*without, plain)) << "step " << step;
      }
      const std::vector<float> second = read_slot(*with, coded, ZERO_SLOT_SECOND_MOMENT);
      for (int64_t step = kAfter; step < kAfter + 6; ++step) {
        (void)train_step(*with, coded, manner, step);
        EXPECT_EQ(differing(read_slot(*with, coded, ZERO_SLOT_SECOND_MOMENT), second), 0) << "step " << step;
        const std::vector<float> first = read_slot(*with, coded, ZERO_SLOT_FIRST_MOMENT);
        ASSERT_GE(coded.counts[0], 11 * kLine);
        for (size_t begin = 0; begin < 11 * kLine; begin += kLine) {
          std::set<float> moved;
          for (size_t i = begin; i < begin + kLine; ++i) moved.insert(std::abs(first[i]));
          moved.erase(moved.begin(), moved.lower_bound(1e-5F * *moved.rbegin()));  // of elements that keep still
          EXPECT_LE(*moved.rbegin() - *moved.begin(), 1e-5F * *moved.rbegin());
        }
      }
    });
  }
}

/// The first coded step with a good code leaves almost the first moment of a plain step, whatever divides the gradients.
TEST(CodeFreeze, CarriesTheWholeFirstMomentUnderEveryDivisor) {
  for (const int64_t divisor : {ZERO_DIVISOR_RANKS, ZERO_DIVISOR_ONE, ZERO_DIVISOR_WEIGHTS}) {
    Model coded = freeze_model({6, 2}, {.number = ZERO_CODE_I8, .after = kAfter});
    coded.divisor = divisor;
    const Model plain = without_codes(coded);
    run_world(6, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = manner_of(3, 4096);
      const auto with = begun_optimizer(group, coded, manner);
      const auto without = begun_optimizer(group, plain, manner);
      train_steps(*with, coded, manner, 0, kAfter + 1);
      train_steps(*without, plain, manner, 0, kAfter + 1);
      const std::vector<float> carried = read_slot(*with, coded, ZERO_SLOT_FIRST_MOMENT);
      const std::vector<float> expected = read_slot(*without, plain, ZERO_SLOT_FIRST_MOMENT);
      float most = 0;
      float apart = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (std::abs(carried[i]) < 1e-7F) continue;  // it keeps still
        most = std::max(most, std::abs(expected[i]));
        apart = std::max(apart, std::abs(carried[i] - expected[i]));
      }
      EXPECT_LE(apart, 0.02F * most) << "divisor " << divisor;
      EXPECT_GT(apart, 0) << "divisor " << divisor;
    });
  }
}

TEST(CodeFreeze, HasTheSameBitsInEveryManner) {
  const int64_t manners = full_tests() ? 24 : few_tests() ? 2 : 5;
  for (const World &world : kWorlds) {
    for (const int64_t code : {ZERO_CODE_SIGN, ZERO_CODE_TOP, ZERO_CODE_I4, ZERO_CODE_F8}) {
      if (!full_tests() && world.ranks % 4 != 0 && code != ZERO_CODE_SIGN) continue;
      Model model = freeze_model(world, {.number = code, .after = 2});
      model.steps = 7;
      model.recipe.overflow_step = 4;
      model.recipe.frozen_every = 5;
      model.recipe.tied = true;
      model.counts.push_back(model.counts.front());
      if (code == ZERO_CODE_F8) model.recipe.dtype = DType::bf16;
      if (code == ZERO_CODE_TOP) model.divisor = ZERO_DIVISOR_WEIGHTS;
      if (code == ZERO_CODE_I4) model.algorithm = "adam";
      if (world.ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
      if (world.ranks == 4) model.recipe.overflow_step = 8;
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        EXPECT_EQ(expect_same_in_every_manner(group, model, static_cast<uint64_t>(code * 100 + world.ranks), manners).skipped, 1);
      });
    }
  }
}

/// Parameters that follow their masters by differences do not concern moments.
TEST(CodeFreeze, WorksBesideCodedGathers) {
  Model model = freeze_model({4, 2}, kSign);
  model.recipe.gather_code = ZERO_CODE_I4;
  FreezeRule rule(model, kSign);
  for (int64_t step = 0; step < 7; ++step) rule.step(step);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {1, 2}) {
      const Manner manner = manner_of(stage, 4096);
      const auto optimizer = begun_optimizer(group, model, manner);
      train_steps(*optimizer, model, manner, 0, 7);
      EXPECT_EQ(differing(read_slot(*optimizer, model, ZERO_SLOT_MASTER), rule.ends().params), 0) << "stage " << stage;
      EXPECT_EQ(differing(read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT), rule.ends().first), 0) << "stage " << stage;
    }
  });
}

/// A skipped step leaves all state as it was, and the run goes on as the plain program, under a loss scale that grows and falls. Codes
/// begin by calls. If both steps before them are skipped, the second moment takes the first step that is applied.
TEST(CodeFreeze, KeepsNothingOfASkippedStep) {
  constexpr int64_t kSteps = 8;
  const SparseCode code{.number = ZERO_CODE_SIGN, .after = 2};
  Model model = freeze_model({4, 2}, code);
  model.recipe.loss_scale = 8;
  model.recipe.keys.emplace_back(ZERO_KEY_LOSS_SCALE_DYNAMIC, 1);
  model.recipe.keys.emplace_back(ZERO_KEY_LOSS_SCALE_WINDOW, 2);
  std::vector<std::set<int64_t>> cases = {{0, 1}, {1, 2, 6}};
  for (int64_t step = 0; step < kSteps; ++step) cases.push_back({step});
  for (const std::set<int64_t> &skipped : cases) {
    FreezeRule rule(model, code);
    for (int64_t step = 0; step < kSteps; ++step) skipped.count(step) > 0 ? rule.skip() : rule.step(step);
    EXPECT_EQ(rule.second_updates(), std::max<int64_t>(2 - skipped.count(0) - skipped.count(1), 1));
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = manner_of(*skipped.begin() % 4, 4096);
      const auto optimizer = begun_optimizer(group, model, manner);
      double scale = 8;
      std::set<double> scales;
      for (int64_t step = 0; step < kSteps; ++step) {
        const bool skips = skipped.count(step) > 0;
        Model now = model;
        now.recipe.loss_scale = scale;
        now.recipe.overflow_step = skips ? step : -1;
        const std::vector<std::byte> before = read_slots(*optimizer, model);
        const zero_step_result result = train_step(*optimizer, now, manner, step);
        EXPECT_EQ(result.skipped, skips ? 1 : 0) << "step " << step;
        EXPECT_EQ(read_slots(*optimizer, model) == before, skips) << "step " << step;
        scale = result.loss_scale;
        scales.insert(scale);
      }
      EXPECT_GE(scales.size(), 3U);
      expect_ends(*optimizer, model, rule.ends(), "the first skipped is " + std::to_string(*skipped.begin()));
    });
  }
}

constexpr int64_t kSavedSteps = 8;

/// Saved after each step, one of which is skipped before codes begin, and loaded in another manner.
TEST(CodeFreeze, SavedRunsGoOnWithTheBitsOfTheUndisturbedRun) {
  for (const auto &[world, code] : {std::pair{World{2, 1}, kSign}, {World{4, 2}, kTop}, {World{6, 2}, kSign}}) {
    Model model = freeze_model(world, code);
    model.recipe.overflow_step = 1;
    model.recipe.loss_scale = 8;
    model.recipe.sets = 2;
    const Manner from = manner_of(world.ranks % 4, 4096);
    const Manner to = manner_of((world.ranks + 1) % 4, 16384);
    Ends expected;
    const std::vector<SaveFolder> folders(kSavedSteps - 1);
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, from);
      const auto checkpoint = checkpoint_of(optimizer);
      for (int64_t step = 0; step < kSavedSteps; ++step) {
        (void)train_step(*optimizer, model, from, step);
        if (step + 1 < kSavedSteps) expect_ok(save(*checkpoint, folders[static_cast<size_t>(step)].path()), "save");
      }
      expected.put(*optimizer, read_slots(*optimizer, model));
    });
    for (int64_t saved = 1; saved < kSavedSteps; saved += few_tests() ? 3 : 1) {
      Ends ends;
      EXPECT_EQ(go_on(model, to, folders[static_cast<size_t>(saved - 1)].path(), saved, kSavedSteps, ends), "");
      EXPECT_TRUE(expected == ends) << "saved after step " << saved << ", " << name_of(world, code);
    }
  }
}

/// A second moment that has missed steps goes on from the updates that it had, with and without the key, until codes begin again.
TEST(CodeFreeze, SecondMomentsGoOnFromTheirUpdatesWhereCodesEnd) {
  constexpr int64_t kAgain = 10;
  const Model model = freeze_model({4, 2}, kSign);
  const Manner manner = manner_of(2, 4096);
  const SaveFolder folder;
  FreezeRule rule(model, kSign);
  for (int64_t step = 0; step < kSavedSteps; ++step) rule.step(step);
  rule.begin_after(kAgain);
  std::vector<FreezeRule::Ends> expected;
  for (int64_t step = kSavedSteps; step < kAgain + 2; ++step) {
    rule.step(step);
    expected.push_back(rule.ends());
  }
  EXPECT_EQ(rule.second_updates(), kAfter + kAgain - kSavedSteps);
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, kSavedSteps);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    for (const bool freezes : {true, false}) {
      Model other = model;
      for (auto &[key, value] : other.recipe.keys) {
        if (key == ZERO_KEY_CODE_AFTER) value = kAgain;
        if (key == ZERO_KEY_CODE_FREEZE) value = freezes ? 1 : 0;
      }
      const auto loaded = make_optimizer(group, other, manner_of(1, 16384));
      expect_ok(load(*checkpoint_of(loaded), folder.path()), "load");
      for (int64_t step = kSavedSteps; step < kAgain + (freezes ? 2 : 0); ++step) {
        (void)train_step(*loaded, other, manner, step);
        expect_ends(*loaded, other, expected[static_cast<size_t>(step - kSavedSteps)],
                    "step " + std::to_string(step) + (freezes ? " with" : " without") + " the key");
      }
    }
  });
}

/// Residuals belong to replicas that are no more; moments and the updates of the second do not.
TEST(CodeFreeze, GoesOnWithOtherReplicas) {
  const Model model = freeze_model({4, 2}, kSign);
  const SaveFolder folder;
  std::vector<float> second;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner_of(2, 4096));
    train_steps(*optimizer, model, manner_of(2, 4096), 0, kSavedSteps);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    const std::vector<float> mine = read_slot(*optimizer, model, ZERO_SLOT_SECOND_MOMENT);
    if (group->rank() == 0) second = mine;
  });
  for (const World &world : {World{2, 1}, World{6, 2}}) {
    Model other = freeze_model(world, kSign);
    other.seed = model.seed;
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = make_optimizer(group, other, manner_of(1, 4096));
      const auto checkpoint = checkpoint_of(optimizer);
      expect_ok(load(*checkpoint, folder.path()), "load");
      EXPECT_NE(checkpoint->skipped().find("dropped"), std::string::npos);
      const std::vector<float> first = read_slot(*optimizer, other, ZERO_SLOT_FIRST_MOMENT);
      train_steps(*optimizer, other, manner_of(1, 4096), kSavedSteps, kSavedSteps + 2);
      EXPECT_EQ(differing(read_slot(*optimizer, other, ZERO_SLOT_SECOND_MOMENT), second), 0);
      EXPECT_GT(differing(read_slot(*optimizer, other, ZERO_SLOT_FIRST_MOMENT), first), 0);
      EXPECT_NE(optimizer->describe().find("stays as 3 updates left it"), std::string::npos) << optimizer->describe();
      expect_same_on_all_ranks(*optimizer);
    });
  }
}

TEST(CodeFreeze, TakesNoMemoryAndNoTraffic) {
  for (const World &world : {World{2, 1}, World{4, 2}}) {
    const Model with = freeze_model(world, kSign);
    Model without = with;
    without.recipe.keys.pop_back();
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = manner_of(1, 4096);
      const auto used = [&](const Model &model) {
        const auto optimizer = begun_optimizer(group, model, manner);
        train_steps(*optimizer, model, manner, 0, kAfter + 2);
        MemoryUse use{};
        expect_ok(optimizer->memory(ZERO_MEMORY_TOTAL, &use), "memory");
        EXPECT_LE(use.peak_nbytes, use.formula_nbytes + use.constant_nbytes);
        return std::vector<int64_t>{use.peak_nbytes, use.formula_nbytes + use.constant_nbytes,
                                    optimizer->traffic(OperationKind::reduce_scatter).sent_nbytes,
                                    optimizer->traffic(OperationKind::all_gather).sent_nbytes};
      };
      EXPECT_EQ(used(with), used(without));
    });
  }
}

TEST(CodeFreeze, TellsWhichUpdateTheSecondMomentHasStoppedAt) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Model model = freeze_model({2, 1}, kSign);
    const Manner manner;
    const auto optimizer = begun_optimizer(group, model, manner);
    const auto tells = [&](const char *words) { EXPECT_NE(optimizer->describe().find(words), std::string::npos) << optimizer->describe(); };
    tells("the second moment stays from the step on in which codes begin");
    train_steps(*optimizer, model, manner, 0, kAfter + 3);
    tells("1-bit Adam: coded gradients carry the first moment; the second moment stays as 3 updates left it");
    expect_ok(optimizer->set_i64(ZERO_KEY_STEP_COUNT, 50), "set_i64");
    train_steps(*optimizer, model, manner, kAfter + 3, kAfter + 5);
    tells("stays as 50 updates left it");
  });
}

}  // namespace
}  // namespace zero::test::code_freeze_test
