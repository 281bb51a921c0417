/// @file Parameters of stage 3 that are sharded over fewer ranks than states: the bits of plain stage 3, and copies that follow every
/// change.
#include "tests/algorithms.h"
#include "tests/engine/param_worlds.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::param_ranks_test {
namespace {

std::vector<std::vector<std::byte>> all_acquired(Optimizer &optimizer, const Model &model) {
  std::vector<std::vector<std::byte>> all;
  for (int64_t id = 0; id < model.tensors(); ++id) all.push_back(acquired_bytes(optimizer, model, id));
  return all;
}

/// Two passes over all parameters see the same values in both optimizers.
void expect_alike(Optimizer &optimizer, Optimizer &plain, const Model &model, const std::string &when) {
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(all_acquired(optimizer, model), all_acquired(plain, model)) << when << " rank " << optimizer.group()->rank();
  }
}

/// Runs body(optimizer, plain, model): the first shards parameters over fewer ranks.
template <class Body>
void run_both(const ParamWorld &world, const Model &model, Manner manner, Body &&body) {
  manner.stage = 3;
  run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
    Manner spread = manner;
    spread.param_ranks = world.param_ranks;
    const auto optimizer = begun_optimizer(group, model, spread);
    const auto plain = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    ASSERT_NE(plain, nullptr);
    body(*optimizer, *plain);
  });
}

TEST(ParamRanks, EndsWithTheBitsOfPlainStage3ByChance) {
  const uint64_t models = full_tests() ? 600 : few_tests() ? 8 : 54;
  for (uint64_t seed = 1; seed <= models; ++seed) {
    const ParamWorld &world = kParamWorlds[seed % std::size(kParamWorlds)];
    Model model = random_model(seed + 9000, world.ranks, 1 << 12);
    if (seed % 4 > 0) model.recipe = random_recipe(seed, model.algorithm);
    if (seed % 5 == 0 && model.recipe.dtype != DType::f16) {
      model.recipe.coded = true;
      model.recipe.master = ZERO_MASTER_F32;
    }
    if (seed % 6 == 0) {
      model.recipe.tied = true;
      model.counts.push_back(model.counts.front());
    }
    if (seed % 7 == 0) model.recipe.overflow_step = 1;
    model.steps = 4;
    run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
      const Outcome expected = train(group, model, plain_manner());
      Manner manner = random_manner(seed * 31, world.ranks);
      manner.stage = 3;
      manner.param_ranks = world.param_ranks;
      manner.verify_every = static_cast<int64_t>(seed % 3);
      Outcome outcome = train(group, model, manner);
      if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
      ASSERT_EQ(differing(expected, outcome), 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
    });
    if (HasFailure()) return;
  }
}

TEST(ParamRanks, EndsWithTheBitsOfPlainStage3WithEveryAlgorithm) {
  for (const char *algorithm : all_names()) {
    for (const ParamWorld &world : {ParamWorld{4, 2, 2}, ParamWorld{6, 2}, ParamWorld{8, 4}}) {
      Model model = edge_model(world.ranks);
      model.algorithm = algorithm;
      if (model.algorithm == "sgd") model.momentum = 0.9;
      if (model.algorithm == "muon") model.counts = {1024, 256, 4096, 600, 64};
      model.recipe.dtype = DType::bf16;
      run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
        const Outcome expected = train(group, model, plain_manner());
        EXPECT_EQ(differing(expected, train(group, model, spread_manner(world.param_ranks))), 0) << algorithm;
      });
    }
  }
}

/// Before and after each step, with gathers that run ahead or without, in f32, with masters, in 8 bits and kept whole.
TEST(ParamRanks, AcquiresSeeEveryStep) {
  const int64_t one_in = full_tests() ? 1 : few_tests() ? 7 : 3;
  int64_t number = 0;
  for (const ParamWorld &world : kParamWorlds) {
    for (int kind = 0; kind < 4; ++kind) {
      if (number++ % one_in != 0) continue;
      Model model = edge_model(world.ranks);
      Recipe &recipe = model.recipe;
      recipe.micro_steps =
          kind == 1 ? std::vector<int32_t>{ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST} : std::vector<int32_t>{};
      recipe.dtype = kind == 1 || kind == 2 ? DType::bf16 : DType::f32;
      recipe.coded = kind == 2;
      recipe.gather_below = kind == 3 ? 300 : 0;
      recipe.frozen_every = kind == 0 ? 3 : 0;
      recipe.overflow_step = 2;
      Manner manner;
      manner.overlap = kind % 2 == 0;
      manner.bucket_nbytes = kind == 0 ? 4096 : 1 << 20;
      run_both(world, model, manner, [&](Optimizer &optimizer, Optimizer &plain) {
        expect_alike(optimizer, plain, model, "after begin");
        int64_t skipped = 0;
        for (int64_t step = 0; step < 4; ++step) {
          const std::vector<std::byte> before = read_slots(optimizer, model);
          const std::vector<std::vector<std::byte>> acquired = all_acquired(optimizer, model);
          const zero_step_result result = train_step(optimizer, model, manner, step);
          skipped += result.skipped;
          EXPECT_EQ(train_step(plain, model, manner, step).skipped, result.skipped);
          EXPECT_EQ(result.skipped == 1, read_slots(optimizer, model) == before && all_acquired(optimizer, model) == acquired);
          expect_alike(optimizer, plain, model, "after step " + std::to_string(step) + " kind " + std::to_string(kind));
        }
        EXPECT_EQ(skipped, 1);
        EXPECT_EQ(read_slots(optimizer, model), read_slots(plain, model));
        expect_same_on_all_ranks(optimizer);
      });
    }
  }
}

/// Owners are given values between steps, in several ways; the next acquire sees them, before begin as after it.
TEST(ParamRanks, AcquiresSeeWhatWasWritten) {
  for (const ParamWorld &world : {ParamWorld{4, 2, 2}, ParamWorld{6, 2}, ParamWorld{8, 1}, ParamWorld{4, -1, 2}}) {
    for (const bool coded : {false, true}) {
      Model model = edge_model(world.ranks);
      model.recipe.frozen_every = 4;
      model.recipe.coded = coded;
      if (coded) model.recipe.dtype = DType::bf16;
      run_both(world, model, Manner{}, [&](Optimizer &optimizer, Optimizer &plain) {
        const int64_t rank = optimizer.group()->rank();
        const auto both = [&](auto &&call) {
          call(optimizer);
          call(plain);
        };
        const auto begin = [](Optimizer &one) { expect_ok(run_task(one, one.begin(ZERO_SOURCE_SHARDS)), "begin"); };
        const auto step = [&](int64_t number) { both([&](Optimizer &one) { (void)train_step(one, model, plain_manner(), number); }); };
        step(0);
        expect_alike(optimizer, plain, model, "after a step");
        // Rank 1 writes within a trained and a frozen tensor.
        const std::vector<float> values(400, 0.75F);
        const std::vector<float> scales(4, 0.25F);
        for (const int64_t id : {int64_t{0}, int64_t{3}}) {
          const std::vector<std::vector<std::byte>> before = all_acquired(optimizer, model);
          const int64_t count = rank == 1 ? (coded ? 4 : 400) : 0;
          both([&](Optimizer &one) {
            expect_ok(run_task(one, one.write(id, coded ? ZERO_SLOT_PARAM_SCALE : ZERO_SLOT_PARAM, 0,
                                              coded ? static_cast<const void *>(scales.data()) : values.data(), count)),
                      "write");
          });
          EXPECT_NE(all_acquired(optimizer, model), before);
          expect_alike(optimizer, plain, model, "after a write");
        }
        both(begin);
        expect_alike(optimizer, plain, model, "after begin");
        step(1);
        both([&](Optimizer &one) { expect_ok(one.init_param(9, ZERO_INITIALISER_NORMAL, 0, 1, 7), "init_param"); });
        expect_alike(optimizer, plain, model, "after init_param");
        both(begin);
        step(2);
        expect_alike(optimizer, plain, model, "after begin and a step");
        if (coded) {
          const std::vector<float> masters(256, -2.5F);
          both([&](Optimizer &one) {
            expect_ok(run_task(one, one.write(0, ZERO_SLOT_MASTER, 256, masters.data(), rank == 0 ? 256 : 0)), "write");
          });
          both(begin);
          expect_alike(optimizer, plain, model, "after masters were written");
        }
        step(3);
        EXPECT_EQ(read_slots(optimizer, model), read_slots(plain, model));
        expect_same_on_all_ranks(optimizer);
      });
    }
  }
}

/// An algorithm of the caller's own edits views between reduce and gather.
TEST(ParamRanks, AcquiresSeeUpdatesOfTheCaller) {
  for (const ParamWorld &world : {ParamWorld{4, 2}, ParamWorld{6, 3, 3}}) {
    Model model = edge_model(world.ranks);
    model.algorithm = "custom";
    run_both(world, model, Manner{}, [&](Optimizer &optimizer, Optimizer &plain) {
      for (int64_t step = 0; step < 2; ++step) {
        for (Optimizer *one : {&optimizer, &plain}) {
          give_gradients(*one, model, plain_manner(), step);
          expect_ok(run_task(*one, one->reduce(nullptr)), "reduce");
          int64_t views = 0;
          expect_ok(one->view_count(&views), "view_count");
          for (int64_t index = 0; index < views; ++index) {
            View view{};
            expect_ok(one->view(index, ZERO_SLOT_PARAM, &view), "view");
            auto *values = static_cast<float *>(view.data);
            for (int64_t k = 0; k < view.count; ++k) values[k] += static_cast<float>(view.offset + k);
          }
          expect_ok(run_task(*one, one->gather()), "gather");
        }
        expect_alike(optimizer, plain, model, "after an own update");
      }
      expect_same_on_all_ranks(optimizer);
    });
  }
}

/// All sources of first values, and a model that does not train.
TEST(ParamRanks, AcquiresSeeFirstValuesOfAllSources) {
  for (const int32_t source : {ZERO_SOURCE_LOCAL, ZERO_SOURCE_ROOT, ZERO_SOURCE_SHARDS}) {
    for (const bool trains : {true, false}) {
      for (const bool coded : {false, true}) {
        Model model = edge_model(6);
        if (!trains) model.algorithm = "none";
        model.recipe.coded = coded && trains;
        Manner manner;
        manner.source = source;
        run_both({6, 2, 2}, model, manner, [&](Optimizer &optimizer, Optimizer &plain) {
          expect_alike(optimizer, plain, model, "source " + std::to_string(source));
          expect_same_on_all_ranks(optimizer);
        });
      }
    }
  }
}

/// Saves hold shards, so that any number of ranks may share the parameters of the run that goes on.
TEST(ParamRanks, GoesOnFromSavesOfOtherWorlds) {
  constexpr std::array<ParamWorld, 6> kAfter = {{{4, 2}, {4, 0}, {4, 1, 2}, {2, 1}, {6, 2, 2}, {8, -1, 4}}};
  Every every(5);
  for (const ParamWorld &saved : {ParamWorld{4, 2, 2}, ParamWorld{4, 0}, ParamWorld{6, 3}}) {
    for (const bool coded : {false, true}) {
      Model model = saved_model();
      model.recipe.coded = coded;
      model.recipe.average = !coded;
      if (coded) model.recipe.dtype = DType::bf16;
      const auto in_world = [&](int64_t ranks) {
        Model now = model;
        now.ranks = ranks;
        return now;
      };
      const SaveFolder folder;
      std::vector<std::byte> expected;
      run_hosts(saved.ranks, saved.per_host, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, in_world(saved.ranks), spread_manner(saved.param_ranks));
        step_alone(*optimizer, model, 0, 3);
        expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
        step_alone(*optimizer, model, 3, 5);
        std::vector<std::byte> slots = read_slots(*optimizer, model);
        if (group->rank() == 0) expected = std::move(slots);
      });
      for (const ParamWorld &world : kAfter) {
        if (!every.next()) continue;
        run_hosts(world.ranks, world.per_host, [&](const std::shared_ptr<Group> &group) {
          const auto optimizer = begun_optimizer(group, in_world(world.ranks), spread_manner(world.param_ranks));
          const auto plain = make_optimizer(group, in_world(world.ranks), plain_manner());
          const std::vector<std::vector<std::byte>> first = all_acquired(*optimizer, model);
          zero_checkpoint_result result{};
          expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
          EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0);
          expect_ok(load(*checkpoint_of(plain), folder.path()), "load");
          EXPECT_NE(all_acquired(*optimizer, model), first);
          expect_alike(*optimizer, *plain, model, "after a load");
          expect_same_on_all_ranks(*optimizer);
          step_alone(*optimizer, model, 3, 5);
          EXPECT_EQ(read_slots(*optimizer, model), expected) << world.ranks << " ranks, parameters over " << world.param_ranks;
        });
      }
    }
  }
}

/// Blocks lie within replicas, which make every step together, or steps of their own.
TEST(ParamRanks, GoesWithReplicas) {
  for (const int64_t period : {1, 2}) {
    for (const int64_t param_ranks : {1, 2}) {
      Model model = edge_model(8);
      model.steps = 5;
      model.recipe.replica_ranks = 4;
      model.recipe.sync_period = period;
      model.recipe.outer_lr = period > 1 ? 0.7 : 1;
      model.recipe.grad_code = period == 1 ? ZERO_CODE_I8 : ZERO_CODE_NONE;
      model.recipe.sync_code = period > 1 ? ZERO_CODE_I8 : ZERO_CODE_NONE;
      run_both({8, param_ranks, 4}, model, Manner{}, [&](Optimizer &optimizer, Optimizer &plain) {
        for (int64_t step = 0; step < model.steps; ++step) {
          (void)train_step(optimizer, model, plain_manner(), step);
          (void)train_step(plain, model, plain_manner(), step);
          expect_alike(optimizer, plain, model, "after step " + std::to_string(step));
        }
        for (Optimizer *one : {&optimizer, &plain}) expect_ok(run_task(*one, one->sync(nullptr)), "sync");
        expect_alike(optimizer, plain, model, "after a synchronisation");
        const std::vector<float> values(100, 0.5F);
        for (Optimizer *one : {&optimizer, &plain})
          expect_ok(run_task(*one, one->write(0, ZERO_SLOT_PARAM, 900, values.data(), one->group()->rank() == 7 ? 100 : 0)), "write");
        expect_alike(optimizer, plain, model, "after a write");
        for (Optimizer *one : {&optimizer, &plain}) expect_ok(run_task(*one, one->begin(ZERO_SOURCE_SHARDS)), "begin");
        expect_alike(optimizer, plain, model, "after begin");
        expect_same_on_all_ranks(optimizer);
      });
    }
  }
}

}  // namespace
}  // namespace zero::test::param_ranks_test
