/// @file Parameters that follow their masters by coded differences: the rule, its bits in every manner, and what becomes of them.
#include "group/collectives.h"
#include "tests/engine/coded_model.h"
#include "tests/engine/gather_rule.h"
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::gather_code_test {
namespace {

std::vector<std::vector<float>> all_masters(Optimizer &optimizer, const Model &model) {
  std::vector<std::vector<float>> masters;
  for (int64_t id = 0; id < model.tensors(); ++id) masters.push_back(read_masters(optimizer, model, id));
  return masters;
}

/// On every rank.
void expect_rule(Optimizer &optimizer, const Model &model, const GatherRule &rule, const std::string &when) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    ASSERT_EQ(acquired_bytes(optimizer, model, id), rule.stored(id))
        << "tensor " << id << " " << when << " rank " << optimizer.group()->rank() << "\n"
        << model.text();
  }
}

/// Stages 1 and 2 in all their manners.
Manner random_manner_for(uint64_t seed, int64_t ranks) {
  Manner manner = random_manner(seed, ranks);
  manner.stage = static_cast<int64_t>(seed % 2) + 1;
  manner.one_copy = false;
  manner.verify_every = static_cast<int64_t>(seed % 5 == 0 ? 1 : 0);
  return manner;
}

Model random_coded_model(uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x9a7e);
  const int64_t ranks = static_cast<int64_t>(random() % 4) + 2;
  Model model = random_model(seed, ranks, 1 << 12);
  for (const int64_t count : {257, 255, 1, 256, 0}) {
    if (random() % 3 == 0) model.counts.push_back(count);
  }
  Recipe &recipe = model.recipe;
  static constexpr std::array<DType, 4> kDTypes = {DType::f32, DType::f32, DType::bf16, DType::f16};
  recipe.gather_code = kCodes[random() % kCodes.size()];
  recipe.dtype = kDTypes[random() % kDTypes.size()];
  recipe.mixed = random() % 3 == 0;
  recipe.average = random() % 4 == 0;
  recipe.frozen_every = random() % 4 == 0 ? 3 : 0;
  recipe.flush_period = random() % 3 == 0 ? 2 : 0;
  recipe.overflow_step = random() % 4 == 0 ? 1 : -1;
  if (random() % 3 == 0) recipe.clip_norm = 0.5;
  if (random() % 4 == 0) {
    recipe.tied = true;
    model.counts.push_back(model.counts.front());
  }
  return model;
}

int64_t per_host_of(uint64_t seed) { return static_cast<int64_t>(std::array{0, 2, 0, 1, 3}[seed % 5]); }

/// Masters are those of a run that gathers parameters, and parameters what the rule makes of them, after each step and on every rank.
TEST(GatherCode, FollowsTheRuleBitForBit) {
  const uint64_t models = full_tests() ? 1000 : few_tests() ? 6 : 40;
  for (uint64_t seed = 1; seed <= models; ++seed) {
    const Model model = random_coded_model(seed);
    Model plain = model;
    plain.recipe.gather_code = ZERO_CODE_NONE;
    plain.recipe.flush_period = 0;
    run_hosts(model.ranks, per_host_of(seed), [&](const std::shared_ptr<Group> &group) {
      const Manner manner = random_manner_for(seed, model.ranks);
      const auto optimizer = begun_optimizer(group, model, manner);
      const auto other = begun_optimizer(group, plain, in_stage(1));
      GatherRule rule(model);
      for (int64_t step = 0; step < model.steps; ++step) {
        const zero_step_result result = train_step(*optimizer, model, manner, step);
        (void)train_step(*other, plain, in_stage(1), step);
        const std::vector<std::vector<float>> masters = all_masters(*optimizer, model);
        const bool in_full = model.recipe.flush_period > 0 && (step + 1) % model.recipe.flush_period == 0;
        if (result.skipped == 0) rule.follow(masters, in_full);
        expect_rule(*optimizer, model, rule, "after step " + std::to_string(step) + " in manner " + manner.text());
        for (int64_t id = 0; id < model.tensors(); ++id) {
          if (model.frozen(id)) continue;
          const bool has_master = model.dtype(id) != DType::f32;
          const std::vector<float> wanted =
              has_master ? read_masters(*other, plain, id)
                         : decode(acquired_bytes(*other, plain, id).data(), DType::f32, model.counts[static_cast<size_t>(id)]);
          ASSERT_EQ(differing(masters[static_cast<size_t>(id)], wanted), 0) << "master " << id << "\n"
                                                                            << model.text() << "\n"
                                                                            << manner.text();
        }
      }
      expect_same_on_all_ranks(*optimizer);
    });
    if (testing::Test::HasFailure()) return;
  }
}

/// However data moves: all slots have the same bits, with accumulation, weights and several micro-steps too.
TEST(GatherCode, HasTheSameBitsInEveryManner) {
  const int64_t manners = full_tests() ? 24 : few_tests() ? 2 : 5;
  for (const int64_t ranks : {2, 3, 4, 6}) {
    for (const int64_t code : kCodes) {
      Model model = gather_model(ranks, code);
      model.steps = 4;
      model.divisor = ranks == 3 ? ZERO_DIVISOR_WEIGHTS : ZERO_DIVISOR_RANKS;
      model.recipe.overflow_step = code == ZERO_CODE_I8 ? 2 : -1;
      model.recipe.flush_period = ranks == 6 ? 3 : 0;
      if (code == ZERO_CODE_F8) model.recipe.dtype = DType::bf16;
      if (ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
      if (ranks == 2) model.algorithm = code == ZERO_CODE_I4 ? "lamb" : "muon";
      for (const int64_t per_host : {int64_t{0}, (ranks + 1) / 2}) {
        run_hosts(ranks, per_host, [&](const std::shared_ptr<Group> &group) {
          const Outcome expected = train(group, model, in_stage(1));
          for (int64_t index = 0; index < manners; ++index) {
            const Manner manner = random_manner_for(static_cast<uint64_t>(code * 100 + ranks * 10 + index), ranks);
            Outcome outcome = train(group, model, manner);
            if (!manner.norm) outcome.norms = expected.norms;
            ASSERT_EQ(differing(expected, outcome), 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
          }
        });
      }
    }
  }
}

/// Errors do not add up: W is as near to M as the newest difference lets it be.
TEST(GatherCode, StaysWithinHalfAQuantum) {
  const int64_t steps = full_tests() ? 1000 : few_tests() ? 20 : 100;
  for (const int64_t code : kCodes) {
    Model model = gather_model(2, code);
    model.algorithm = code == ZERO_CODE_I8 ? "sgd" : "adam";
    model.weight_decay = 0;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = in_stage(2);
      const auto optimizer = begun_optimizer(group, model, manner);
      const GatherRule layout(model);
      std::vector<float> before = decode(layout.stored(0).data(), DType::f32, model.counts[0]);
      double worst = 0;
      for (int64_t step = 0; step < steps; ++step) {
        (void)train_step(*optimizer, model, manner, step);
        const std::vector<float> masters = read_masters(*optimizer, model, 0);
        const std::vector<float> after = decode(acquired_bytes(*optimizer, model, 0).data(), DType::f32, model.counts[0]);
        for (int64_t begin = 0; begin < layout.coded_count(0); begin += kLine) {
          std::vector<float> line;
          const int64_t end = std::min(begin + kLine, layout.coded_count(0));
          for (int64_t k = begin; k < end; ++k) line.push_back(masters[static_cast<size_t>(k)] - before[static_cast<size_t>(k)]);
          for (int64_t k = begin; k < end; ++k) {
            const auto at = static_cast<size_t>(k);
            const double error = std::abs(static_cast<double>(masters[at]) - after[at]);
            const double rounding = std::abs(static_cast<double>(after[at])) * 0x1p-24;
            worst = std::max(worst, (error - rounding) / half_quantum(line, line[static_cast<size_t>(k - begin)], code));
          }
        }
        before = after;
      }
      EXPECT_LE(worst, 1.001) << "code " << code;
      EXPECT_GT(worst, 0.5) << "code " << code;
    });
  }
}

/// A run in which a step is skipped goes on as one that never made it.
TEST(GatherCode, SkippedStepsLeaveAllBits) {
  constexpr int64_t kSteps = 4;
  for (int64_t skipped = 0; skipped <= kSteps; ++skipped) {
    Model model = gather_model(3, kCodes[static_cast<size_t>(skipped) % kCodes.size()]);
    model.recipe.average = true;
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = in_stage(skipped % 2 + 1);
      const auto slots_of = [&](int64_t overflow) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step <= kSteps; ++step) {
          Model now = model;
          now.recipe.overflow_step = step == overflow ? step : -1;
          if (step == skipped && overflow < 0) continue;
          const std::vector<std::byte> before = read_slots(*optimizer, model);
          EXPECT_EQ(train_step(*optimizer, now, manner, step).skipped, step == overflow ? 1 : 0) << "step " << step;
          EXPECT_TRUE(step != overflow || read_slots(*optimizer, model) == before);
        }
        return read_slots(*optimizer, model);
      };
      EXPECT_EQ(slots_of(skipped), slots_of(-1)) << "step " << skipped;
    });
  }
}

/// Parameters and masters are saved as they are, so that it does not matter when a run is saved, and who goes on.
TEST(GatherCode, GoesOnFromASaveWithTheBitsOfTheUndisturbedRun) {
  constexpr std::array<std::pair<int64_t, int64_t>, 4> kWorlds = {{{2, 1}, {3, 2}, {4, 1}, {2, 2}}};  // ranks and stage
  for (const int64_t code : kCodes) {
    Model model = saved_model();
    model.recipe.gather_code = code;
    model.recipe.average = true;
    if (code == ZERO_CODE_I8) model.recipe.dtype = DType::bf16;
    if (code == ZERO_CODE_I4) model.recipe.flush_period = 2;
    const auto in_world = [&](int64_t ranks) {
      Model now = model;
      now.ranks = ranks;
      return now;
    };
    const SaveFolder folder;
    std::vector<std::byte> expected;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, in_world(2), in_stage(1));
      step_alone(*optimizer, model, 0, 3);
      expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
      step_alone(*optimizer, model, 3, 6);
      std::vector<std::byte> slots = read_slots(*optimizer, model);
      if (group->rank() == 0) expected = std::move(slots);
    });
    for (const auto &[ranks, stage] : kWorlds) {
      run_world(ranks, [&, ranks = ranks, stage = stage](const std::shared_ptr<Group> &group) {
        const auto optimizer = make_optimizer(group, in_world(ranks), in_stage(stage));
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
        EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0);
        expect_same_on_all_ranks(*optimizer);
        step_alone(*optimizer, model, 3, 6);
        EXPECT_EQ(read_slots(*optimizer, model), expected) << "ranks " << ranks << " code " << code;
      });
    }
  }
}

/// Into a run that gathers parameters: those of f32 become what their masters were. And back: masters are the parameters.
TEST(GatherCode, SavesFitRunsThatGatherParameters) {
  Model coded = saved_model();
  coded.ranks = 2;
  coded.recipe.gather_code = ZERO_CODE_I4;
  Model plain = coded;
  plain.recipe.gather_code = ZERO_CODE_NONE;
  for (const bool from_coded : {true, false}) {
    const SaveFolder folder;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto saved = begun_optimizer(group, from_coded ? coded : plain, in_stage(1));
      step_alone(*saved, coded, 0, 3);
      expect_ok(save(*checkpoint_of(saved), folder.path()), "save");
      const auto loaded = make_optimizer(group, from_coded ? plain : coded, in_stage(2));
      expect_ok(load(*checkpoint_of(loaded), folder.path(), ZERO_PART_ALL), "load");
      Optimizer &follows = from_coded ? *saved : *loaded;
      Optimizer &other = from_coded ? *loaded : *saved;
      for (int64_t id = 0; id < coded.tensors(); ++id) {
        EXPECT_EQ(acquired_bytes(other, coded, id), encode(read_masters(follows, coded, id), DType::f32)) << id;
        EXPECT_TRUE(from_coded || acquired_bytes(follows, coded, id) == acquired_bytes(other, coded, id)) << id;
      }
    });
  }
}

}  // namespace
}  // namespace zero::test::gather_code_test
