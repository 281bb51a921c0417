/// @file Optimizers whose process runs out of memory in the midst of a call: nothing counts twice, nobody waits for a rank that has none,
/// and what is under way comes to an end.
#include "tests/core/failures.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <new>
#include <string>
#include <vector>

namespace zero::test::out_of_memory_test {
namespace {

std::shared_ptr<Optimizer> unsealed(const std::shared_ptr<Group> &group, const Config &config, std::vector<int64_t> counts) {
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  for (const int64_t count : counts) {
    int64_t id = 0;
    const std::string name = "p" + std::to_string(count);
    EXPECT_TRUE(optimizer->add_param(nullptr, name.c_str(), ZERO_DTYPE_F32, &count, 1, &id).ok());
  }
  return optimizer;
}

/// An exception out of a call, as lib/api reports it.
template <class Function>
Status without_memory(int64_t allowed, Function &&call) {
  const FailingNew failing(allowed);
  try {
    return call();
  } catch (const std::bad_alloc &) {
    return Status::error(ZERO_E_OUT_OF_MEMORY, "%s", "");
  }
}

/// Ranges from the middle outwards, so that what is noted grows.
TEST(OutOfMemory, AGradientWhoseCallFailedAndIsMadeAgainCountsOnce) {
  constexpr int64_t kCount = 64;
  int failures = 0;
  for (int64_t allowed = 0; allowed < 12; ++allowed) {
    run_world(1, [&](const std::shared_ptr<Group> &group) {
      Config config;
      ASSERT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, "sgd").ok());
      ASSERT_TRUE(config.set_f64(ZERO_KEY_LR, 1).ok());
      const auto optimizer = unsealed(group, config, {kCount});
      ASSERT_TRUE(run_task(*optimizer, optimizer->seal()).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      const float one = 1;
      std::array<float, kCount> expected{};
      for (int64_t i = 0; i < kCount / 2; ++i) {
        const int64_t offset = 2 * i;
        const auto give = [&] { return optimizer->grad_ready(0, &one, offset, 1, nullptr); };
        const Status given = without_memory(allowed < 4 ? allowed : (allowed + i) % 2, give);
        if (!given.ok()) {
          ++failures;
          ASSERT_EQ(given.code(), ZERO_E_OUT_OF_MEMORY);
          ASSERT_TRUE(give().ok());
        }
        expected[static_cast<size_t>(offset)] = -1;
      }
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      std::array<float, kCount> params{};
      ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, params.data(), kCount)).ok());
      EXPECT_EQ(params, expected);
    });
  }
  EXPECT_GT(failures, 0);
}

TEST(OutOfMemory, ARankThatCannotSealTellsTheOthers) {
  int failures = 0;
  for (int64_t allowed = 0; allowed < 24; ++allowed) {
    std::barrier ended(2);  // nobody leaves before
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto first = unsealed(group, {}, {300});
      EXPECT_TRUE(run_task(*first, first->seal()).ok());  // what tasks are made from is there
      const auto optimizer = unsealed(group, {}, {300, 5});
      group->set_deadline_ms(10'000);
      const auto seal = [&] { return run_task(*optimizer, optimizer->seal()); };
      const Status status = group->rank() == 0 ? without_memory(allowed, seal) : seal();
      ended.arrive_and_wait();
      EXPECT_NE(status.code(), ZERO_E_TIMEOUT) << "allowed " << allowed << ": " << status.text();
      if (group->rank() == 0 && !status.ok()) ++failures;
    });
  }
  EXPECT_GT(failures, 10);
}

TEST(OutOfMemory, AnOptimizerIsReleasedWithReductionsUnderWay) {
  std::barrier step(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Config config;
    ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, 2).ok());
    ASSERT_TRUE(config.set_i64(ZERO_KEY_OVERLAP, 0).ok());
    auto optimizer = unsealed(group, config, {5000});
    ASSERT_TRUE(run_task(*optimizer, optimizer->seal()).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
    if (group->rank() == 0) {
      const std::vector<float> gradient(5000, 1.0F);
      ASSERT_TRUE(optimizer->grad_ready(0, gradient.data(), 0, 5000, nullptr).ok());
      const FailingNew failing(0);
      optimizer.reset();
    }
    step.arrive_and_wait();
    if (group->rank() == 1) {
      EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_PEER_LEFT);
    }
    step.arrive_and_wait();
  });
}

/// Whatever a call could not get memory for, it is over when it returns, and the other rank does not wait for it.
TEST(OutOfMemory, ACallThatFailedIsNotUnderWay) {
  for (int64_t allowed = 0; allowed < 40; ++allowed) {
    std::barrier ended(2);  // nobody leaves before
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, 3).ok());
      const auto optimizer = unsealed(group, config, {5000});
      ASSERT_TRUE(run_task(*optimizer, optimizer->seal()).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      group->set_deadline_ms(10'000);
      std::vector<float> values(5000);
      const auto read = [&] { return run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, values.data(), 5000)); };
      const Status status = group->rank() == 0 ? without_memory(allowed, read) : read();
      ended.arrive_and_wait();
      EXPECT_NE(status.code(), ZERO_E_TIMEOUT) << "allowed " << allowed << ": " << status.text();
      const int32_t after = optimizer->set_f64(0, ZERO_KEY_LR, 0.5).code();
      EXPECT_NE(after, ZERO_E_STATE) << "allowed " << allowed;
    });
  }
}

}  // namespace
}  // namespace zero::test::out_of_memory_test
