/// @file Strategies by name: the keys that they set, those that they leave, and what is refused.
#include "engine/config/strategy.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::strategies_test {
namespace {

Config named(const std::string &name) {
  Config config;
  EXPECT_TRUE(config.set_str(ZERO_KEY_STRATEGY, name.c_str()).ok());
  return config;
}

using Keys = std::vector<std::pair<int32_t, double>>;

const std::map<std::string, Keys> kDocumented = {
    {"hsdp", {{ZERO_KEY_REPLICA_RANKS, -1}}},
    {"diloco",
     {{ZERO_KEY_REPLICA_RANKS, -1},
      {ZERO_KEY_SYNC_PERIOD, 64},
      {ZERO_KEY_SYNC_CODE, ZERO_CODE_I4},
      {ZERO_KEY_OUTER_LR, 0.7},
      {ZERO_KEY_OUTER_MOMENTUM, 0.9}}},
    {"zeropp",
     {{ZERO_KEY_STAGE, 3},
      {ZERO_KEY_REPLICA_RANKS, -1},
      {ZERO_KEY_GRAD_CODE, ZERO_CODE_I4},
      {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32},
      {ZERO_KEY_FLUSH_PERIOD, 100},
      {ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3}}},
    {"slow_link",
     {{ZERO_KEY_REPLICA_RANKS, -1},
      {ZERO_KEY_GRAD_CODE, ZERO_CODE_I4},
      {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32},
      {ZERO_KEY_FLUSH_PERIOD, 100}}},
};

double value_of(const Config &config, int32_t key) {
  return find_key(key)->type == KeyType::f64 ? config.f64(key) : static_cast<double>(config.i64(key));
}

TEST(Strategies, SetTheKeysThatReplicasHNames) {
  for (const auto &[name, keys] : kDocumented) {
    Config config = named(name);
    std::string text;
    ASSERT_TRUE(expand_strategy(config, &text).ok());
    EXPECT_EQ(text.find(name + ": "), 0U) << text;
    size_t set = 0;
    for (const KeyInfo &key : all_keys()) set += config.is_set(key.key) ? 1 : 0;
    EXPECT_EQ(set, keys.size() + 1) << name;  // and its own
    for (const auto &[key, value] : keys) {
      EXPECT_EQ(value_of(config, key), value) << find_key(key)->name;
      EXPECT_NE(text.find(find_key(key)->name), std::string::npos) << text;
    }
  }
}

TEST(Strategies, LeaveKeysThatTheConfigSets) {
  Config config = named("diloco");
  ASSERT_TRUE(config.set_i64(ZERO_KEY_SYNC_PERIOD, 8).ok());
  ASSERT_TRUE(config.set_f64(ZERO_KEY_OUTER_LR, 1).ok());
  std::string text;
  ASSERT_TRUE(expand_strategy(config, &text).ok());
  EXPECT_EQ(text,
            "diloco: ZERO_KEY_REPLICA_RANKS = -1, ZERO_KEY_SYNC_PERIOD = 8 (given), ZERO_KEY_SYNC_CODE = ZERO_CODE_I4, "
            "ZERO_KEY_OUTER_LR = 1 (given), ZERO_KEY_OUTER_MOMENTUM = 0.9");
}

TEST(Strategies, AreRefusedWithTheirKeysWhereTheyCannotAct) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const auto refused = [&](const char *name, const char *words) {
      std::shared_ptr<Optimizer> optimizer;
      const Status status = Optimizer::create(group, named(name), &optimizer);
      EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(status, words)) << status.text();
    };
    refused("fast", "ZERO_KEY_STRATEGY is \"fast\", but must be \"hsdp\", \"diloco\", \"zeropp\" or \"slow_link\"");
    // All ranks are on one host.
    refused("diloco", "strategy diloco: ZERO_KEY_REPLICA_RANKS = -1, ZERO_KEY_SYNC_PERIOD = 64");
    refused("slow_link", "ZERO_KEY_GRAD_CODE is ZERO_CODE_I4, but no gradients travel between replicas");
    refused("zeropp", "strategy zeropp: ZERO_KEY_STAGE = 3");
  });
}

/// The keys by name and one by one end with the same bits; describe tells them.
TEST(Strategies, TrainAsTheirKeys) {
  for (const auto &[name, keys] : kDocumented) {
    Model model;
    model.ranks = 4;
    model.counts = {700, 3, 1024, 257};
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      const auto slots_of = [&](const Config &config) {
        std::shared_ptr<Optimizer> optimizer;
        expect_ok(Optimizer::create(group, config, &optimizer), "create");
        for (int64_t id = 0; id < model.tensors(); ++id) {
          const std::vector<int64_t> shape = model.shape(id);
          int64_t added = -1;
          expect_ok(
              optimizer->add_param(nullptr, ("w" + std::to_string(id)).c_str(), ZERO_DTYPE_F32, shape.data(), std::ssize(shape), &added),
              "add_param");
        }
        expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
        begin_training(*optimizer, model, Manner{});
        for (int64_t step = 0; step < 6; ++step) (void)train_step(*optimizer, model, Manner{}, step);
        expect_ok(run_task(*optimizer, optimizer->sync(nullptr, nullptr)), "sync");
        const bool tells = optimizer->describe().find("strategy " + name + ": ") != std::string::npos;
        EXPECT_EQ(tells, config.is_set(ZERO_KEY_STRATEGY)) << optimizer->describe();
        return read_slots(*optimizer, model);
      };
      Config by_name = named(name);
      Config one_by_one;
      for (const auto &[key, value] : keys) {
        const bool ranks = key == ZERO_KEY_REPLICA_RANKS;
        if (find_key(key)->type == KeyType::f64) expect_ok(one_by_one.set_f64(key, value), "set_f64");
        if (find_key(key)->type == KeyType::i64) expect_ok(one_by_one.set_i64(key, ranks ? 2 : std::llrint(value)), "set_i64");
      }
      expect_ok(by_name.set_i64(ZERO_KEY_REPLICA_RANKS, 2), "set_i64");
      EXPECT_EQ(slots_of(by_name), slots_of(one_by_one)) << name;
    });
  }
}

}  // namespace
}  // namespace zero::test::strategies_test
