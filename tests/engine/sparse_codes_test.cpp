/// @file Sparse codes of gradients and of changes of parameters: the bits of a plain program on every rank, nothing lost, nothing kept of
/// a skipped step, full steps before codes begin.
#include "group/collectives.h"
#include "tests/engine/sparse_rule.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::sparse_codes_test {
namespace {

using World = CodedWorld;
constexpr std::array<World, 4> kWorlds = {{{2, 1}, {4, 2}, {3, 1}, {8, 2}}};
constexpr std::array<SparseCode, 5> kSparse = {
    {{ZERO_CODE_TOP, 8}, {ZERO_CODE_SIGN}, {ZERO_CODE_TOP, 8, 0.9}, {ZERO_CODE_TOP, 64}, {ZERO_CODE_TOP, 1, 0.5, 3}}};

std::string name_of(const SparseCode &code) {
  return "code " + std::to_string(code.number) + " keeps " + std::to_string(code.kept) + " momentum " + std::to_string(code.momentum) +
         " after " + std::to_string(code.after);
}

std::vector<float> params_of(Optimizer &optimizer, const Model &model) { return read_slot(optimizer, model, ZERO_SLOT_PARAM); }

/// Gradients are those of the step's number, which a run of a thousand steps repeats.
int64_t gradients_of(int64_t step) { return step % 17; }

void expect_rule(const World &world, const SparseCode &code, int64_t flush_period, int64_t steps) {
  Model model = sparse_model(world, code);
  model.recipe.flush_period = flush_period;
  SparseRule rule(model, code);
  std::vector<std::vector<float>> expected;
  for (int64_t step = 0; step < steps; ++step) {
    rule.step(gradients_of(step));
    expected.push_back(rule.params());
  }
  // Velocities are given to the code many times over.
  if (code.momentum == 0) {
    EXPECT_LE(rule.largest_lost(), 1e-5 * static_cast<double>(steps)) << name_of(code);
  }
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    Manner manner;
    manner.stage = (code.kept + world.ranks) % 4;
    manner.bucket_nbytes = 4096;
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    for (int64_t step = 0; step < steps; ++step) {
      (void)train_step(*optimizer, model, manner, gradients_of(step));
      if (step % 10 != 0 && step + 1 < steps) continue;
      ASSERT_EQ(differing(params_of(*optimizer, model), expected[static_cast<size_t>(step)]), 0)
          << name_of(code) << " rank " << group->rank() << " of " << world.ranks << " step " << step;
    }
  });
}

TEST(SparseCodes, HaveTheBitsOfAPlainProgramOnAllRanks) {
  Every every(3);
  for (const World &world : kWorlds) {
    for (const SparseCode &code : kSparse) {
      if (every.next()) expect_rule(world, code, code.kept == 64 ? 7 : 0, 24);
    }
  }
}

TEST(SparseCodes, LoseNothingInManySteps) {
  const int64_t steps = full_tests() ? 1000 : few_tests() ? 40 : 100;
  for (const SparseCode &code : {kSparse[0], kSparse[1]}) expect_rule({4, 2}, code, 0, steps);
}

/// A step in full sends all that waited, so that parameters are those of the sum of all gradients, to roundings of fp32.
TEST(SparseCodes, LeaveNothingBehindAfterAStepInFull) {
  const int64_t steps = full_tests() ? 1000 : few_tests() ? 40 : 100;
  for (const World &world : kWorlds) {
    for (const SparseCode &code : {kSparse[0], kSparse[1], kSparse[3]}) {
      Model model = sparse_model(world, code);
      model.recipe.flush_period = steps;
      std::vector<double> expected;
      for (int64_t id = 0; id < model.tensors(); ++id) {
        for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) {
          double sum = 0;
          for (int64_t step = 0; step < steps; ++step) {
            for (int64_t rank = 0; rank < model.ranks; ++rank)
              sum += static_cast<double>(gradient_at(model, gradients_of(step), rank, id, k));
          }
          expected.push_back(first_value_at(model, id, k) - sum / static_cast<double>(model.ranks));
        }
      }
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        const Manner manner;
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        double waited = 0;
        for (int64_t step = 0; step < steps; ++step) {
          if (step + 1 == steps) {
            const std::vector<float> before = params_of(*optimizer, model);
            for (size_t i = 0; i < before.size(); ++i) waited = std::max(waited, std::abs(before[i] - expected[i]));
          }
          (void)train_step(*optimizer, model, manner, gradients_of(step));
        }
        const std::vector<float> params = params_of(*optimizer, model);
        double largest = 0;
        for (size_t i = 0; i < params.size(); ++i) largest = std::max(largest, std::abs(params[i] - expected[i]));
        EXPECT_LE(largest, 1e-5 * static_cast<double>(steps)) << name_of(code);
        EXPECT_GT(waited, 0.1) << name_of(code);
      });
    }
  }
}

TEST(SparseCodes, HaveTheSameBitsInEveryManner) {
  const int64_t manners = full_tests() ? 24 : few_tests() ? 2 : 5;
  for (const World &world : kWorlds) {
    for (const SparseCode &code : kSparse) {
      Model model = sparse_model(world, code);
      model.steps = 6;
      model.algorithm = "adamw";
      model.hyper.front() = {ZERO_KEY_LR, 0.01};
      model.recipe.overflow_step = 4;
      model.recipe.clip_norm = code.number == ZERO_CODE_SIGN ? 0.5 : 0;
      model.recipe.frozen_every = 5;
      model.recipe.tied = true;
      model.counts.push_back(model.counts.front());
      if (code.kept == 64) model.recipe.dtype = DType::bf16;
      if (world.ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        EXPECT_EQ(expect_same_in_every_manner(group, model, static_cast<uint64_t>(code.number * 1000 + code.kept * 10), manners).skipped,
                  1);
      });
    }
  }
}

/// Fewer elements than ranks, none, and about a line.
TEST(SparseCodes, TakeTensorsOfAnySize) {
  for (const std::vector<int64_t> &counts : std::vector<std::vector<int64_t>>{{0}, {1}, {255}, {256}, {257}, {0, 256, 5}}) {
    for (const SparseCode &code : {kSparse[0], kSparse[1], kSparse[2]}) {
      Model model = sparse_model({8, 2}, code);
      model.counts = counts;
      SparseRule rule(model, code);
      for (int64_t step = 0; step < 4; ++step) rule.step(step);
      run_world(8, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = counts.front() % 4;
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step < 4; ++step) (void)train_step(*optimizer, model, manner, step);
        ASSERT_EQ(differing(params_of(*optimizer, model), rule.params()), 0) << name_of(code) << " " << counts.front();
      });
    }
  }
}

/// A run in which a step is skipped goes on as one that never made it: residuals and velocities stay.
TEST(SparseCodes, KeepNothingOfASkippedStep) {
  for (const SparseCode &code : {kSparse[0], kSparse[1], kSparse[2]})
    expect_skipped_steps_leave_nothing(sparse_model({4, 2}, code), name_of(code));
}

TEST(SparseCodes, FollowTheLossScale) {
  for (const SparseCode &code : {kSparse[0], kSparse[1], kSparse[2]}) expect_loss_scale_followed(sparse_model({4, 2}, code), name_of(code));
}

/// Two reductions in a step are one gradient: momentum is added once.
TEST(SparseCodes, AddMomentumOncePerStep) {
  const SparseCode code{ZERO_CODE_TOP, 8, 0.9, 4};
  Model model = sparse_model({4, 2}, code);
  model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST};
  // In full, which is plain momentum: u = mu u + g, p = p - u.
  std::vector<double> expected;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) {
      double value = first_value_at(model, id, k);
      double velocity = 0;
      for (int64_t step = 0; step < 4; ++step) {
        velocity *= static_cast<double>(0.9F);
        for (int64_t micro = 3 * step; micro < 3 * step + 3; ++micro) {
          for (int64_t rank = 0; rank < 4; ++rank) velocity += static_cast<double>(gradient_at(model, micro, rank, id, k));
        }
        value -= velocity / 4;
      }
      expected.push_back(value);
    }
  }
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
    for (int64_t step = 0; step < 4; ++step) (void)train_step(*optimizer, model, Manner{}, step);
    const std::vector<float> params = params_of(*optimizer, model);
    double largest = 0;
    for (size_t i = 0; i < params.size(); ++i) largest = std::max(largest, std::abs(params[i] - expected[i]));
    EXPECT_LE(largest, 1e-4);
  });
}

/// Changes of parameters keep no residual: what is not sent is dropped.
TEST(SparseCodes, OfChangesOfParametersHaveTheBitsOfAPlainProgram) {
  for (const World &world : kWorlds) {
    for (const SparseCode &code : {kSparse[0], kSparse[1], kSparse[3]}) {
      Model model = sparse_model(world, code);
      model.recipe.grad_code = ZERO_CODE_NONE;
      model.recipe.residual = false;
      model.recipe.sync_code = code.number;
      model.recipe.sync_period = 2;
      SparseRule rule(model, code);
      for (int64_t period = 0; period < 3; ++period) rule.period(2 * period, 2);
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        for (int64_t stage = 0; stage < 4; ++stage) {
          Manner manner;
          manner.stage = stage;
          manner.bucket_nbytes = stage == 3 ? 26'214'400 : 4096;
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          for (int64_t step = 0; step < 6; ++step) (void)train_step(*optimizer, model, manner, step);
          expect_same_on_all_ranks(*optimizer);
          ASSERT_EQ(differing(params_of(*optimizer, model), rule.params()), 0) << name_of(code) << " stage " << stage;
        }
      });
    }
  }
}

/// All that keys code is sent in full: gradients, parameters that follow by differences, changes of parameters.
TEST(SparseCodes, BeginAfterAsManyStepsAsTheKeySays) {
  constexpr int64_t kAfter = 4;
  const std::vector<std::pair<int32_t, int64_t>> after = {{ZERO_KEY_CODE_AFTER, kAfter}};
  for (int which = 0; which < 5; ++which) {
    Model coded = coded_model({4, 2}, which == 0   ? ZERO_CODE_I4
                                      : which == 1 ? ZERO_CODE_TOP
                                      : which == 2 ? ZERO_CODE_SIGN
                                                   : ZERO_CODE_NONE);
    if (which == 3) coded.recipe.gather_code = ZERO_CODE_I4;
    if (which == 4) coded.recipe.sync_code = ZERO_CODE_I4;
    coded.recipe.sync_period = which == 4 ? 2 : 1;
    coded.recipe.residual = which == 1 || which == 2;
    Model plain = coded;
    plain.recipe.grad_code = plain.recipe.gather_code = plain.recipe.sync_code = ZERO_CODE_NONE;
    plain.recipe.residual = false;
    coded.recipe.keys = after;
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = which == 3 ? 2 : 1;
      const std::shared_ptr<Optimizer> with = begun_optimizer(group, coded, manner);
      const std::shared_ptr<Optimizer> without = begun_optimizer(group, plain, manner);
      for (int64_t step = 0; step < kAfter + 2; ++step) {
        (void)train_step(*with, coded, manner, step);
        (void)train_step(*without, plain, manner, step);
        const int64_t differ = differing(params_of(*with, coded), params_of(*without, plain));
        EXPECT_EQ(differ == 0, step < kAfter || (which == 4 && step == kAfter)) << "keys " << which << " step " << step << ": " << differ;
      }
      EXPECT_NE(with->describe().find(which == 3 ? "in full in the first 4 steps" : "codes begin after 4 steps"), std::string::npos)
          << with->describe();
    });
  }
}

TEST(SparseCodes, SendTheBytesOfTheFormula) {
  for (const World &world : {World{2, 1}, World{4, 1}, World{4, 2}}) {
    for (const SparseCode &code : kSparse) {
      if (code.after > 0) continue;
      Model model = sparse_model(world, code);
      model.counts = {64 * 1024};
      run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = 3;
        manner.norm = false;
        const auto sent = [&](Optimizer &optimizer) {
          return optimizer.traffic(OperationKind::reduce_scatter).sent_nbytes + optimizer.traffic(OperationKind::all_gather).sent_nbytes;
        };
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        const int64_t before = sent(*optimizer);
        (void)train_step(*optimizer, model, manner, 0);
        // Within a replica of two, half of the gradients go to the other rank; parameters are not gathered before they are acquired.
        const int64_t within = world.replica_ranks == 2 ? model.counts[0] * 4 / 2 : 0;
        const int64_t lines = model.counts[0] / 256 / world.replica_ranks;
        const int64_t replicas = world.ranks / world.replica_ranks;
        const int64_t line_nbytes = code.number == ZERO_CODE_SIGN ? 36 : 2 * code.kept + 4;
        const int64_t across = 2 * (replicas - 1) * lines * line_nbytes / replicas;
        EXPECT_EQ(sent(*optimizer) - before, within + across) << name_of(code);
        const std::string told = "this rank sends at most " + std::to_string(across) + " bytes";
        EXPECT_NE(optimizer->describe().find(told), std::string::npos) << optimizer->describe();
      });
    }
  }
}

/// As replicas.h says: 8 bytes for each of a rank's sums.
TEST(SparseCodes, TakeTheMemoryOfTheFormulaForMomentum) {
  for (const World &world : kWorlds) {
    Model with = sparse_model(world, kSparse[2]);
    with.counts = {40000, 3000};
    Model without = sparse_model(world, kSparse[0]);
    without.counts = with.counts;
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = 1;
      const auto workspace_of = [&](const Model &model) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        (void)train_step(*optimizer, model, manner, 0);
        MemoryUse use{};
        expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &use), "memory");
        EXPECT_LE(use.peak_nbytes, use.formula_nbytes + use.constant_nbytes);
        return use.peak_nbytes;
      };
      const double own = 43000.0 / static_cast<double>(world.replica_ranks);
      EXPECT_NEAR(static_cast<double>(workspace_of(with) - workspace_of(without)), 8 * own, 3 * 8 * 256);
    });
  }
}

TEST(SparseCodes, TellWhatTheyKeep) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, sparse_model({2, 1}, {ZERO_CODE_TOP, 5, 0.5}), Manner{});
    for (const char *told : {"8-bit integer codes of the largest values, 5 of each 256", "momentum 0.5 before they are coded"})
      EXPECT_NE(optimizer->describe().find(told), std::string::npos) << optimizer->describe();
  });
}

TEST(SparseCodes, AreRefusedByNameWhereTheyDoNotWork) {
  using Keys = std::vector<std::pair<int32_t, int64_t>>;
  const auto refused = [](const std::shared_ptr<Group> &group, Keys keys, int32_t status, const char *words) {
    keys.emplace_back(ZERO_KEY_REPLICA_RANKS, 1);
    expect_refused(group, keys, status, words);
  };
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const std::pair<int32_t, int64_t> residual{ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32};
    refused(group, {{ZERO_KEY_GRAD_CODE, ZERO_CODE_TOP}}, ZERO_E_UNSUPPORTED,
            "ZERO_KEY_GRAD_CODE is ZERO_CODE_TOP and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_NONE");
    refused(group, {{ZERO_KEY_GRAD_CODE, ZERO_CODE_SIGN}}, ZERO_E_UNSUPPORTED,
            "ZERO_KEY_GRAD_CODE is ZERO_CODE_SIGN and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_NONE");
    for (const auto &[code, words] : {std::pair{ZERO_CODE_TOP, "ZERO_KEY_GATHER_CODE is ZERO_CODE_TOP, but with it"},
                                      {ZERO_CODE_SIGN, "ZERO_KEY_GATHER_CODE is ZERO_CODE_SIGN, but with it"}})
      expect_refused(group, {{ZERO_KEY_GATHER_CODE, code}}, ZERO_E_UNSUPPORTED, words);
    refused(group, {{ZERO_KEY_CODE_TOP, 8}}, ZERO_E_INVALID_ARGUMENT,
            "ZERO_KEY_CODE_TOP is 8, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_NONE and ZERO_KEY_SYNC_CODE ZERO_CODE_NONE");
    refused(group, {{ZERO_KEY_CODE_TOP, 4}, {ZERO_KEY_GRAD_CODE, ZERO_CODE_SIGN}, residual}, ZERO_E_INVALID_ARGUMENT,
            "ZERO_KEY_CODE_TOP is 4, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_SIGN");
    refused(group, {{ZERO_KEY_CODE_AFTER, 9}}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_CODE_AFTER is 9, but has no effect while");
    refused(group, {{ZERO_KEY_CODE_AFTER, 9}, {ZERO_KEY_GRAD_CODE, ZERO_CODE_I8}, {ZERO_KEY_SYNC_PERIOD, 4}, {ZERO_KEY_SYNC_AFTER, 10}},
            ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_CODE_AFTER is 9 and ZERO_KEY_SYNC_AFTER 10");
    refused(group, {{ZERO_KEY_GRAD_CODE, ZERO_CODE_TOP}, residual, {ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED}}, ZERO_E_UNSUPPORTED,
            "would be sent and not applied");
  });
}

TEST(SparseCodes, HaveNoMomentumWithOtherCodesAndNoneThatChanges) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    for (const int64_t code : {ZERO_CODE_NONE, ZERO_CODE_I4, ZERO_CODE_SIGN}) {
      Config config;
      expect_ok(config.set_i64(ZERO_KEY_REPLICA_RANKS, 1), "set_i64");
      expect_ok(config.set_i64(ZERO_KEY_GRAD_CODE, code), "set_i64");
      expect_ok(config.set_i64(ZERO_KEY_RESIDUAL, code == ZERO_CODE_NONE ? 0 : 1), "set_i64");
      expect_ok(config.set_f64(ZERO_KEY_CODE_MOMENTUM, 0.5), "set_f64");
      std::shared_ptr<Optimizer> optimizer;
      const Status status = Optimizer::create(group, config, &optimizer);
      EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(status, "ZERO_KEY_CODE_MOMENTUM is 0.5, but has no effect while ZERO_KEY_GRAD_CODE is")) << status.text();
    }
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, sparse_model({2, 1}, kSparse[2]), Manner{});
    const Status changed = optimizer->set_f64(0, ZERO_KEY_CODE_MOMENTUM, 0.8);
    EXPECT_EQ(changed.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(changed, "ZERO_KEY_CODE_MOMENTUM stays")) << changed.text();
  });
}

TEST(SparseCodes, MustBeWantedByAllRanksAlike) {
  for (const int32_t key : {ZERO_KEY_CODE_TOP, ZERO_KEY_CODE_AFTER, ZERO_KEY_CODE_MOMENTUM}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      for (const auto &[each, value] : {std::pair{ZERO_KEY_REPLICA_RANKS, int64_t{1}},
                                        {ZERO_KEY_GRAD_CODE, int64_t{ZERO_CODE_TOP}},
                                        {ZERO_KEY_RESIDUAL, int64_t{ZERO_RESIDUAL_F32}}})
        expect_ok(config.set_i64(each, value), "set_i64");
      const int64_t mine = group->rank() + 1;
      expect_ok(key == ZERO_KEY_CODE_MOMENTUM ? config.set_f64(key, 0.25 * static_cast<double>(mine)) : config.set_i64(key, mine), "set");
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, config, &optimizer), "create");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
      EXPECT_TRUE(contains(status, find_key(key)->name)) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::sparse_codes_test
