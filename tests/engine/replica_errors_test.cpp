/// @file Replicas that are asked for wrongly, or that differ where they must not.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace zero::test::replica_errors_test {
namespace {

void expect_error(const Status &status, int32_t code, const char *words) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_TRUE(contains(status, words)) << status.text();
}

/// Two replicas of two ranks that meet after so many steps.
Model model_of(int64_t period) {
  Model model;
  model.ranks = 4;
  model.counts = {3000, 17};
  model.recipe.replica_ranks = 2;
  model.recipe.sync_period = period;
  return model;
}

struct Wrong {
  int64_t ranks;
  std::vector<std::pair<int32_t, int64_t>> keys;
  int32_t code;
  const char *text;
};

TEST(ReplicaErrors, WrongKeysAreRefusedByName) {
  const Wrong wrongs[] = {
      {3, {{ZERO_KEY_REPLICA_RANKS, 2}}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_REPLICA_RANKS is 2, but must divide the 3 ranks"},
      {6, {{ZERO_KEY_REPLICA_RANKS, 3}}, ZERO_E_UNSUPPORTED, "must be a power of two or all 6 ranks"},
      {2, {{ZERO_KEY_SYNC_PERIOD, 2}}, ZERO_E_INVALID_ARGUMENT, "there is nothing to synchronise"},
      {2, {{ZERO_KEY_REPLICA_RANKS, 2}, {ZERO_KEY_SYNC_PERIOD, 2}}, ZERO_E_INVALID_ARGUMENT, "there is nothing to synchronise"},
      {2, {{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_SYNC_AFTER, 2}}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SYNC_AFTER is set"},
  };
  for (const Wrong &wrong : wrongs) {
    run_world(wrong.ranks, [&](const std::shared_ptr<Group> &group) {
      Config config;
      for (const auto &[key, value] : wrong.keys) EXPECT_TRUE(config.set_i64(key, value).ok());
      std::shared_ptr<Optimizer> optimizer;
      expect_error(Optimizer::create(group, config, &optimizer), wrong.code, wrong.text);
    });
  }
}

TEST(ReplicaErrors, ParametersWithoutFp32ValuesAreRefused) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_REPLICA_RANKS, 1).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_SYNC_PERIOD, 2).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_MASTER, ZERO_MASTER_NONE).ok());
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    const int64_t count = 5;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_BF16, &count, 1, &id).ok());
    expect_error(optimizer->seal_queue()->run(optimizer->seal()), ZERO_E_UNSUPPORTED, "ZERO_KEY_SYNC_PERIOD above 1 needs ZERO_MASTER_F32");
  });
}

/// One replica comes to sync() a step later than the other.
TEST(ReplicaErrors, DifferentNumbersOfStepsAreAnErrorOnAllRanks) {
  Model model = model_of(int64_t{1} << 40);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const Manner manner;
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    const int64_t steps = group->rank() < 2 ? 1 : 2;
    for (int64_t step = 0; step < steps; ++step) (void)train_step(*optimizer, model, manner, step);
    expect_error(run_task(*optimizer, optimizer->sync(nullptr)), ZERO_E_MISMATCH, "came to the synchronisation of replicas after");
  });
}

TEST(ReplicaErrors, DifferentOuterRatesAreAnErrorOnAllRanks) {
  Model model = model_of(2);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const Manner manner;
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    EXPECT_TRUE(optimizer->set_f64(0, ZERO_KEY_OUTER_LR, group->rank() >= 2 ? 0.5 : 1.0).ok());
    (void)train_step(*optimizer, model, manner, 0);
    give_gradients(*optimizer, model, manner, 1);
    expect_error(run_task(*optimizer, optimizer->step(nullptr)), ZERO_E_MISMATCH, "hyper-parameters differ between replicas");
  });
}

/// One rank of the other replica has other first values.
TEST(ReplicaErrors, DifferentFirstValuesAreAnErrorOnAllRanks) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_REPLICA_RANKS, 2).ok());
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    const int64_t count = 5;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id).ok());
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    void *data = nullptr;
    expect_ok(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)), "param_acquire");
    static_cast<float *>(data)[0] = group->rank() < 2 ? 1.0F : 2.0F;
    expect_ok(optimizer->param_release(id), "param_release");
    const Status status = run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL));
    EXPECT_EQ(status.code(), ZERO_E_REPLICAS_DIFFER) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::replica_errors_test
