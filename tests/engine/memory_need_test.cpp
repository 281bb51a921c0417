/// @file Seal refuses what does not fit before it takes anything, and says what would.
#include "core/machine.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>

namespace zero::test {
namespace {

constexpr int64_t kElements = 1'000'000;

std::shared_ptr<Optimizer> unsealed(const std::shared_ptr<Group> &group, int64_t stage, int64_t limit) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_MEMORY_LIMIT, limit).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, 65'536).ok());
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  int64_t id = 0;
  for (int i = 0; i < 10; ++i) {
    const int64_t shape = kElements / 10;
    EXPECT_TRUE(optimizer->add_param(nullptr, ("p" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &shape, 1, &id).ok());
  }
  return optimizer;
}

TEST(MemoryNeed, StagesThatDoNotFitAreRefusedOnEveryRankWithTheFiguresOfAll) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    // Four ranks of 16 bytes per element: 64 MB in stage 0, 40 MB in stage 1, 28 MB in stage 2, 16 MB in stage 3, and the constants.
    const auto refused = unsealed(group, 0, 40'000'000);
    const Status status = group->queue()->run(refused->seal());
    EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
    EXPECT_NE(std::strstr(status.text(), "stage 0 needs 0.06 GB on the host of rank 0, which holds 4 ranks, but 0.04 GB"), nullptr)
        << status.text();
    MemoryUse use{};
    ASSERT_TRUE(refused->memory(ZERO_MEMORY_TOTAL, &use).ok());
    EXPECT_EQ(use.peak_nbytes, 0);
    // Neither the group nor the optimizer is lost.
    EXPECT_EQ(group->queue()->run(refused->seal()).code(), ZERO_E_OUT_OF_MEMORY);
    const auto fits = unsealed(group, 3, 40'000'000);
    EXPECT_TRUE(group->queue()->run(fits->seal()).ok());
  });
}

TEST(MemoryNeed, WithoutALimitTheMachineDecides) {
  EXPECT_GT(memory_available_nbytes(), 0);
  EXPECT_EQ(host_key(), host_key());
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = unsealed(group, 1, 0);
    EXPECT_TRUE(group->queue()->run(optimizer->seal()).ok());
    const auto huge = unsealed(group, 1, 0);
    const int64_t shape = int64_t{1} << 50;
    int64_t id = 0;
    ASSERT_TRUE(huge->add_param(nullptr, "huge", ZERO_DTYPE_F32, &shape, 1, &id).ok());
    const Status status = group->queue()->run(huge->seal());
    EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
    EXPECT_NE(std::strstr(status.text(), "are available"), nullptr) << status.text();
  });
}

}  // namespace
}  // namespace zero::test
