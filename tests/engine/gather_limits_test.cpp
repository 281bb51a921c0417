/// @file Coded differences at their limits: bytes and memory of the formulas, replicas, edits, lost ranks, and what is refused.
#include "group/collectives.h"
#include "tests/engine/coded_model.h"
#include "tests/engine/gather_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::gather_limits_test {
namespace {

using Keys = std::vector<std::pair<int32_t, int64_t>>;

/// The masters as they are, and parameters as the rule makes them.
void expect_follows(Optimizer &optimizer, const Model &model, GatherRule &rule) {
  std::vector<std::vector<float>> masters;
  for (int64_t id = 0; id < model.tensors(); ++id) masters.push_back(read_masters(optimizer, model, id));
  rule.follow(masters, false);
  for (int64_t id = 0; id < model.tensors(); ++id) EXPECT_EQ(acquired_bytes(optimizer, model, id), rule.stored(id)) << id;
}

int64_t line_nbytes(int64_t code) { return code == ZERO_CODE_I4 ? 132 : 260; }

TEST(GatherLimits, SendsTheBytesOfTheFormula) {
  for (const int64_t ranks : {2, 3, 4}) {
    for (const int64_t code : kCodes) {
      Model model = gather_model(ranks, code);
      // 64 lines of the first tensor, 2 of the second; one more that two small tensors share.
      model.counts = {64 * 256, 400, 20, 40};
      model.recipe.flush_period = 2;
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner = in_stage(code % 2 + 1);
        manner.bucket_nbytes = 1 << 20;
        const auto optimizer = begun_optimizer(group, model, manner);
        const auto sent_by_step = [&](int64_t step) {
          const int64_t before = optimizer->traffic(OperationKind::all_gather).sent_nbytes;
          (void)train_step(*optimizer, model, manner, step);
          (void)acquired_bytes(*optimizer, model, 0);
          return optimizer->traffic(OperationKind::all_gather).sent_nbytes - before;
        };
        // The second tensor's last line has room for both small ones, and travels in full.
        const Range own = Weights(ranks).shard({0, 65 * 256 + 232}, group->rank());
        const int64_t lines = (own.end + 255) / 256 - own.begin / 256;
        const bool has_last = own.end > 65 * 256;
        const int64_t coded = (ranks - 1) * (lines * line_nbytes(code) + (has_last ? 1024 : 0));
        EXPECT_EQ(sent_by_step(0), coded) << "code " << code << " rank " << group->rank();
        EXPECT_EQ(sent_by_step(1), (ranks - 1) * own.count() * 4);
        EXPECT_NE(optimizer->describe().find("this rank sends " + std::to_string(coded) + " bytes per gather"), std::string::npos)
            << optimizer->describe();
      });
    }
  }
}

/// As replicas.h says.
TEST(GatherLimits, TakesTheMemoryOfTheFormula) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Model with = gather_model(2, ZERO_CODE_I4);
    with.counts = {256 * 1024, 5000};
    with.recipe.dtype = dtype;
    Model without = with;
    without.recipe.gather_code = ZERO_CODE_NONE;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto use_of = [&](const Model &model, int32_t category) {
        const auto optimizer = begun_optimizer(group, model, in_stage(1));
        MemoryUse use{};
        expect_ok(optimizer->memory(category, &use), "memory");
        return use;
      };
      const int64_t own = (256 * 1024 + 5000) / 2;
      const int64_t masters = use_of(with, ZERO_MEMORY_STATE).formula_nbytes - use_of(without, ZERO_MEMORY_STATE).formula_nbytes;
      EXPECT_NEAR(static_cast<double>(masters), dtype == DType::f32 ? 4.0 * static_cast<double>(own) : 0, 4 * 256);
      const int64_t workspace = use_of(with, ZERO_MEMORY_WORKSPACE).now_nbytes - use_of(without, ZERO_MEMORY_WORKSPACE).now_nbytes;
      const int64_t lines = 1024 + 20;
      EXPECT_GE(workspace, lines * 132);
      EXPECT_LE(workspace, lines * 132 + (128 << 10) + 4096);
    });
  }
}

/// Replicas that make every step together hold what one group holds; those that part are gathered in full when they meet.
TEST(GatherLimits, GoesWithReplicas) {
  for (const int64_t code : kCodes) {
    Model model = gather_model(4, code);
    model.steps = 4;
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      const Outcome expected = train(group, model, in_stage(1));
      for (const int64_t stage : {1, 2}) {
        Manner manner = in_stage(stage);
        manner.replica_ranks = 2;
        EXPECT_EQ(differing(expected, train(group, model, manner)), 0) << "stage " << stage;
      }
      Model local = model;
      local.recipe.replica_ranks = 2;
      local.recipe.sync_period = 2;
      local.recipe.outer_lr = 0.7;
      local.recipe.outer_momentum = 0.9;
      const auto optimizer = begun_optimizer(group, local, in_stage(1));
      for (int64_t step = 0; step < 3; ++step) {
        const bool meets = train_step(*optimizer, local, in_stage(1), step).synced != 0;
        EXPECT_EQ(meets, step == 1);
        for (const int64_t id : {int64_t{0}, int64_t{8}}) {
          EXPECT_EQ(acquired_bytes(*optimizer, local, id) == encode(read_masters(*optimizer, local, id), DType::f32), meets) << step;
        }
      }
      expect_ok(run_task(*optimizer, optimizer->sync(nullptr, nullptr)), "sync");
      EXPECT_EQ(acquired_bytes(*optimizer, local, 0), encode(read_masters(*optimizer, local, 0), DType::f32));
      expect_same_on_all_ranks(*optimizer);
    });
  }
}

/// Both ways in codes: gradients between replicas, with residuals, and differences within each. Rows, unfilled and frozen tensors too.
TEST(GatherLimits, GoesWithCodedGradientsAndRows) {
  for (const int64_t code : kCodes) {
    Model model = gather_model(4, code);
    model.counts.push_back(40 * 64);
    model.rows.assign(model.counts.size(), 0);
    model.rows.back() = 40;
    model.steps = 4;
    model.recipe.unfilled_every = 3;
    model.recipe.frozen_every = 4;
    Model by_rows = model;
    by_rows.by_rows = true;
    Model coded = model;
    coded.recipe.replica_ranks = 2;
    coded.recipe.grad_code = code;
    coded.recipe.residual = true;
    coded.recipe.flush_period = 3;
    run_hosts(4, 2, [&](const std::shared_ptr<Group> &group) {
      const Outcome expected = train(group, model, in_stage(1));
      EXPECT_EQ(differing(expected, train(group, by_rows, in_stage(2))), 0);
      Manner small = in_stage(2);
      small.bucket_nbytes = 1024;
      small.overlap = true;
      EXPECT_EQ(differing(train(group, coded, in_stage(1)), train(group, coded, small)), 0);
    });
  }
}

/// Ranks 0 and 2 hold one half of a model, 1 and 3 the other; a tensor that both have stays the same on all.
TEST(GatherLimits, GoesWithModelGroups) {
  run_world(4, [](const std::shared_ptr<Group> &world) {
    std::shared_ptr<Group> data;
    std::shared_ptr<Group> model;
    const int64_t half = world->rank() % 2;
    expect_ok(world->queue()->run(split(*world, half, world->rank(), &data)), "split");
    expect_ok(world->queue()->run(split(*world, world->rank() / 2, world->rank(), &model)), "split");
    Config config;
    for (const auto &[key, value] : Keys{{ZERO_KEY_STAGE, 1}, {ZERO_KEY_GATHER_CODE, ZERO_CODE_I4}})
      expect_ok(config.set_i64(key, value), "set");
    expect_ok(config.set_f64(ZERO_KEY_LR, 0.01), "set");
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(data, config, &optimizer), "create");
    expect_ok(optimizer->set_model_group(model), "set_model_group");
    Config options;
    expect_ok(options.set_i64(ZERO_KEY_REPLICATED, 1), "set");
    int64_t id = 0;
    const Model both = gather_model(2, ZERO_CODE_I4);
    for (const auto &[name, count] : {std::pair<const char *, int64_t>{"own", 500 + 300 * half}, {"both", 700}})
      expect_ok(optimizer->add_param(name[0] == 'b' ? &options : nullptr, name, ZERO_DTYPE_F32, &count, 1, &id), "add_param");
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "begin");
    std::vector<float> values(700);
    for (int64_t step = 0; step < 3; ++step) {
      for (size_t k = 0; k < values.size(); ++k) values[k] = gradient_at(both, step, data->rank(), 1, static_cast<int64_t>(k));
      expect_ok(optimizer->grad_ready(1, values.data(), 0, 700), "grad_ready");
      expect_ok(optimizer->grad_ready(0, std::vector<float>(900, 1).data(), 0, 500 + 300 * half), "grad_ready");
      expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
    }
    void *data_of_both = nullptr;
    expect_ok(run_task(*optimizer, optimizer->param_acquire(1, nullptr, 0, &data_of_both)), "param_acquire");
    std::vector<float> first(static_cast<float *>(data_of_both), static_cast<float *>(data_of_both) + 700);
    expect_ok(optimizer->param_release(1), "param_release");
    const std::vector<float> mine = first;
    expect_ok(world->queue()->run(broadcast(*world, first.data(), 700, DType::f32, 0)), "broadcast");
    EXPECT_EQ(differing(mine, first), 0);
    EXPECT_NE(encode(mine, DType::f32), encode(std::vector<float>(700, 0), DType::f32));
  });
}

/// Begin makes masters and parameters equal: both become the parameter, or what was written into the master.
TEST(GatherLimits, BeginTakesParametersOrWrittenMasters) {
  const Model model = gather_model(3, ZERO_CODE_I4);
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, in_stage(2));
    for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, in_stage(2), step);
    const std::vector<std::byte> kept = acquired_bytes(*optimizer, model, 0);
    EXPECT_NE(kept, encode(read_masters(*optimizer, model, 0), DType::f32));
    const std::vector<float> written(700, 2.5F);
    expect_ok(run_task(*optimizer, optimizer->write(8, ZERO_SLOT_MASTER, 0, written.data(), group->rank() == 0 ? 700 : 0)), "write");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    EXPECT_EQ(acquired_bytes(*optimizer, model, 0), kept);
    EXPECT_EQ(encode(read_masters(*optimizer, model, 0), DType::f32), kept);
    EXPECT_EQ(acquired_bytes(*optimizer, model, 8), encode(written, DType::f32));
    EXPECT_EQ(read_masters(*optimizer, model, 8), written);
    (void)train_step(*optimizer, model, in_stage(2), 2);
    expect_same_on_all_ranks(*optimizer);
  });
}

/// Masters that were written far from their parameters: the next difference is large, and the rule holds.
TEST(GatherLimits, FollowsMastersThatWereWritten) {
  for (const int64_t code : kCodes) {
    const Model model = gather_model(2, code);
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, in_stage(1));
      GatherRule rule(model);
      std::vector<float> far = read_masters(*optimizer, model, 0);
      for (size_t k = 0; k < far.size(); ++k) far[k] += static_cast<float>(k) - 1500;
      expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, far.data(), group->rank() == 0 ? 3000 : 0)), "write");
      for (int64_t step = 0; step < 3; ++step) {
        (void)train_step(*optimizer, model, in_stage(1), step);
        expect_follows(*optimizer, model, rule);
      }
    });
  }
}

/// Without an epsilon Adam leaves NaN between tensors, where there is no gradient. It must not become the scale of a line.
TEST(GatherLimits, TakesNoHeedOfWhatLiesBetweenTensors) {
  for (const int64_t code : kCodes) {
    Model model = gather_model(2, code);
    model.counts = {300, 513, 700};
    model.algorithm = "adam";
    model.weight_decay = 0;
    model.hyper = {{ZERO_KEY_EPSILON, 0}};
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, in_stage(1));
      GatherRule rule(model);
      for (int64_t step = 0; step < 3; ++step) {
        (void)train_step(*optimizer, model, in_stage(1), step);
        expect_follows(*optimizer, model, rule);
      }
      for (const float value : rule.values(0)) ASSERT_TRUE(std::isfinite(value));
    });
  }
}

/// An algorithm of the caller's own changes masters; a view of parameters would change those of one rank only.
TEST(GatherLimits, FollowsAnAlgorithmOfTheCallersOwn) {
  Model model = gather_model(3, ZERO_CODE_I8);
  model.algorithm = "custom";
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, in_stage(2));
    GatherRule rule(model);
    give_gradients(*optimizer, model, in_stage(2), 0);
    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
    int64_t views = 0;
    ASSERT_TRUE(optimizer->view_count(&views).ok());
    for (int64_t i = 0; i < views; ++i) {
      View view{};
      const Status refused = optimizer->view(i, ZERO_SLOT_PARAM, &view);
      EXPECT_EQ(refused.code(), ZERO_E_UNSUPPORTED);
      EXPECT_TRUE(contains(refused, "ZERO_KEY_GATHER_CODE is set") && contains(refused, "ZERO_SLOT_MASTER instead")) << refused.text();
      ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_MASTER, &view).ok());
      auto *values = static_cast<float *>(view.data);
      for (int64_t k = 0; k < view.count; ++k) values[k] -= static_cast<float>((view.offset + k) % 37) / 1024;
    }
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    expect_follows(*optimizer, model, rule);
  });
}

/// A part of the parameters may have followed when a rank is lost; masters are whole.
TEST(GatherLimits, ParametersOfAGatherThatALostRankCutShortAreRefused) {
  Model model = gather_model(4, ZERO_CODE_I4);
  model.counts = {3000, 40, 2500, 5000, 100, 7000};
  Manner manner = in_stage(2);
  manner.overlap = true;
  manner.bucket_nbytes = 8192;
  run_hosts(4, 2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    give_gradients(*optimizer, model, manner, 0);
    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->apply()).ok());
    if (group->rank() == 3) return;  // releases the optimizer instead
    int64_t views = 0;
    ASSERT_TRUE(optimizer->view_count(&views).ok());
    (void)run_task(*optimizer, optimizer->gather());
    void *data = nullptr;
    EXPECT_FALSE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).ok());
    for (int64_t i = 0; i < views; ++i) {
      View view{};
      ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_MASTER, &view).ok());
      std::vector<float> values(static_cast<size_t>(view.count));
      const auto read = [&](int32_t slot) {
        return run_task(*optimizer, optimizer->read(view.param, slot, view.offset, values.data(), view.count));
      };
      EXPECT_TRUE(read(ZERO_SLOT_MASTER).ok());
      const Status own = read(ZERO_SLOT_PARAM);
      EXPECT_EQ(own.code(), ZERO_E_CORRUPT) << own.text();
      EXPECT_TRUE(contains(own, "the step was half applied")) << own.text();
    }
  });
}

TEST(GatherLimits, WhatCannotGoTogetherIsRefusedByName) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const auto refused = [&](Keys keys, int32_t code, const char *words) {
      keys.insert(keys.begin(), {ZERO_KEY_GATHER_CODE, ZERO_CODE_I4});
      expect_refused(group, keys, code, words);
    };
    const std::pair<int32_t, int64_t> stage{ZERO_KEY_STAGE, 1};
    refused({{ZERO_KEY_STAGE, 0}}, ZERO_E_UNSUPPORTED,
            "ZERO_KEY_GATHER_CODE is ZERO_CODE_I4 and ZERO_KEY_STAGE 0, but in stage 0 every rank");
    refused({{ZERO_KEY_STAGE, 3}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_GATHER_CODE is ZERO_CODE_I4 and ZERO_KEY_STAGE 3, but in stage 3 no rank");
    refused({stage, {ZERO_KEY_REPLICA_RANKS, 1}}, ZERO_E_INVALID_ARGUMENT, "where one rank holds a replica (ZERO_KEY_REPLICA_RANKS)");
    refused({stage, {ZERO_KEY_ONE_COPY, 1}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_GATHER_CODE is ZERO_CODE_I4 and ZERO_KEY_ONE_COPY 1");
    refused({stage, {ZERO_KEY_DEVICE, 0}, {ZERO_KEY_TIER, ZERO_TIER_DEVICE}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_TIER ZERO_TIER_DEVICE");
    refused({stage, {ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_UNFILLED is ZERO_UNFILLED_UNTOUCHED");
    refused({stage, {ZERO_KEY_ROUNDING, ZERO_ROUNDING_STOCHASTIC}}, ZERO_E_UNSUPPORTED, "ZERO_KEY_ROUNDING is ZERO_ROUNDING_STOCHASTIC");
    expect_refused(group, {{ZERO_KEY_FLUSH_PERIOD, 4}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_FLUSH_PERIOD is set, but has no effect while ZERO_KEY_GRAD_CODE and ZERO_KEY_GATHER_CODE are ZERO_CODE_NONE");
  });
  run_world(1, [](const std::shared_ptr<Group> &group) {
    expect_refused(group, {{ZERO_KEY_GATHER_CODE, ZERO_CODE_F8}, {ZERO_KEY_STAGE, 2}}, ZERO_E_INVALID_ARGUMENT,
                   "where one rank holds a replica");
    Config config;
    expect_ok(config.set_i64(ZERO_KEY_GATHER_CODE, ZERO_CODE_F8), "set_i64");
    expect_ok(config.set_str(ZERO_KEY_ALGORITHM, "none"), "set_str");
    std::shared_ptr<Optimizer> optimizer;
    const Status status = Optimizer::create(group, config, &optimizer);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(status, "ZERO_KEY_GATHER_CODE is ZERO_CODE_F8, but has no effect with ZERO_KEY_ALGORITHM \"none\""))
        << status.text();
  });
}

/// Of one parameter: found when the optimizer is sealed. Frozen ones may be what they like.
TEST(GatherLimits, ParametersWithoutMastersAreRefusedByName) {
  const auto seal_with = [](const Keys &keys, DType dtype, int32_t code, const char *words) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      expect_ok(config.set_i64(ZERO_KEY_GATHER_CODE, ZERO_CODE_I8), "set_i64");
      expect_ok(config.set_i64(ZERO_KEY_STAGE, 1), "set_i64");
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, config, &optimizer), "create");
      Config options;
      for (const auto &[key, value] : keys) expect_ok(options.set_i64(key, value), "set_i64");
      const int64_t count = 1000;
      int64_t id = 0;
      expect_ok(optimizer->add_param(nullptr, "first", ZERO_DTYPE_F32, &count, 1, &id), "add_param");
      expect_ok(optimizer->add_param(&options, "second", static_cast<int32_t>(dtype), &count, 1, &id), "add_param");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), code) << status.text();
      EXPECT_TRUE(contains(status, words)) << status.text();
    });
  };
  const std::pair<int32_t, int64_t> coded{ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3};
  seal_with({coded}, DType::f32, ZERO_E_UNSUPPORTED, "ZERO_KEY_GATHER_CODE is ZERO_CODE_I8 and ZERO_KEY_PARAM_DTYPE f8_e4m3");
  seal_with({{ZERO_KEY_MASTER, ZERO_MASTER_NONE}}, DType::f16, ZERO_E_UNSUPPORTED, "ZERO_KEY_MASTER ZERO_MASTER_NONE");
  seal_with({{ZERO_KEY_MASTER, ZERO_MASTER_REMAINDER}}, DType::bf16, ZERO_E_UNSUPPORTED, "ZERO_KEY_MASTER ZERO_MASTER_REMAINDER");
  seal_with({coded, {ZERO_KEY_FROZEN, 1}}, DType::f32, ZERO_OK, "");
  seal_with({{ZERO_KEY_MASTER, ZERO_MASTER_NONE}}, DType::f32, ZERO_OK, "");
}

TEST(GatherLimits, MustBeWantedByAllRanksAlike) {
  for (const int32_t key : {ZERO_KEY_GATHER_CODE, ZERO_KEY_FLUSH_PERIOD}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      expect_ok(config.set_i64(ZERO_KEY_STAGE, 1), "set_i64");
      expect_ok(config.set_i64(ZERO_KEY_GATHER_CODE, ZERO_CODE_I8), "set_i64");
      expect_ok(config.set_i64(key, group->rank() + 2), "set_i64");
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, config, &optimizer), "create");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
      EXPECT_TRUE(contains(status, find_key(key)->name)) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::gather_limits_test
