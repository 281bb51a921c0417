/// @file Seal refuses what does not fit before it takes anything, and says what would.
#include "engine/optimizer/memory_need.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace zero::test::memory_need_test {
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
    EXPECT_NE(std::strstr(status.text(), "MB on the host of rank 0 (its ranks there: 4), but 40.00 MB are ZERO_KEY_MEMORY_LIMIT"), nullptr)
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

TEST(MemoryNeed, CountsWhatUpdatesOfMatricesNeedAndWhatIsGatheredAhead) {
  const auto seal = [](const std::shared_ptr<Group> &group, const char *algorithm, int64_t stage, int64_t ahead, int64_t limit) {
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_OVERLAP, 1).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_PREFETCH_BYTES, ahead).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_MEMORY_LIMIT, limit).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, 65'536).ok());
    EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, algorithm).ok());
    std::shared_ptr<Optimizer> optimizer;
    EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    for (const char *name : {"a", "b"}) {
      const int64_t shape[] = {512, 512};
      int64_t id = 0;
      EXPECT_TRUE(optimizer->add_param(nullptr, name, ZERO_DTYPE_F32, shape, 2, &id).ok());
    }
    const Status status = group->queue()->run(optimizer->seal());
    MemoryUse use{};
    EXPECT_TRUE(!status.ok() || optimizer->memory(ZERO_MEMORY_TOTAL, &use).ok());
    EXPECT_LE(use.peak_nbytes * group->size(), limit);
    return status.code();
  };
  // Parameters, gradients and a moment of 2 MiB each, and at least 3 MiB to multiply matrices of 1 MiB.
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    EXPECT_EQ(seal(group, "muon", 0, 0, 8 << 20), ZERO_E_OUT_OF_MEMORY);
    EXPECT_EQ(seal(group, "muon", 0, 0, 20 << 20), ZERO_OK);
  });
  // 8 MiB over all ranks; on each two buckets and a tensor as it is acquired, of 1 MiB each, and up to 2 MiB for those ahead.
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    EXPECT_EQ(seal(group, "adamw", 3, 0, 22 << 20), ZERO_OK);
    EXPECT_EQ(seal(group, "adamw", 3, 1 << 24, 22 << 20), ZERO_E_OUT_OF_MEMORY);
    EXPECT_EQ(seal(group, "adamw", 3, 1 << 24, 32 << 20), ZERO_OK);
  });
}

/// Tensors of each size have a format of their own, and so a bucket that waits for the next one while those of others come.
TEST(MemoryNeed, CountsAllBucketsThatTheOrderOfGradientsHolds) {
  constexpr int kLayers = 4;
  constexpr int64_t kSizes[] = {65'536, 512, 64};
  const auto seal = [&](const std::shared_ptr<Group> &group, int64_t stage, int64_t limit, std::shared_ptr<Optimizer> *out) {
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_MEMORY_LIMIT, limit).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_GATHER_BELOW, 1024).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, 26'214'400).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_SECOND_MOMENT_DTYPE, ZERO_DTYPE_F8_UE5M3).ok());
    EXPECT_TRUE(Optimizer::create(group, config, out).ok());
    int64_t id = 0;
    for (int64_t i = 0; i < kLayers * std::ssize(kSizes); ++i) {
      const int64_t shape = kSizes[i % std::ssize(kSizes)];
      EXPECT_TRUE((*out)->add_param(nullptr, ("p" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &shape, 1, &id).ok());
    }
    return group->queue()->run((*out)->seal()).code();
  };
  for (const int64_t stage : {2, 3}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      std::shared_ptr<Optimizer> optimizer;
      // 5.6 MB and 4.8 MB without buckets, of which each rank holds one of 1 MiB and two small ones.
      EXPECT_EQ(seal(group, stage, 6'500'000, &optimizer), ZERO_E_OUT_OF_MEMORY);
      ASSERT_EQ(seal(group, stage, 8'500'000, &optimizer), ZERO_OK);
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).ok());
      const std::vector<float> grad(static_cast<size_t>(kSizes[0]), 1.0F);
      for (int64_t id = kLayers * std::ssize(kSizes) - 1; id >= 0; --id) {
        ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, kSizes[id % std::ssize(kSizes)]).ok());
      }
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      MemoryUse pool{};
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_GRAD_POOL, &pool).ok());
      EXPECT_EQ(pool.peak_nbytes, pool.constant_nbytes);
      EXPECT_EQ(optimizer->step_times().pool_grow_count, 0);
    });
  }
}

/// Large and small tensors, the large ones 8-bit or not.
std::shared_ptr<Optimizer> unsealed_mixture(const std::shared_ptr<Group> &group, int64_t stage, int64_t below, bool coded, int64_t limit) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_MEMORY_LIMIT, limit).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_GATHER_BELOW, below).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_PARAM_DTYPE, coded ? ZERO_DTYPE_F8_E4M3 : 0).ok());
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  int64_t id = 0;
  for (const int64_t shape : {200'000, 300, 100, 100'000}) {
    EXPECT_TRUE(optimizer->add_param(nullptr, ("p" + std::to_string(shape)).c_str(), ZERO_DTYPE_BF16, &shape, 1, &id).ok());
  }
  return optimizer;
}

/// What statistics say, without staging: a bit more, because pages are whole.
TEST(MemoryNeed, IsTheFormulaAndTheConstant) {
  constexpr int64_t kPages = 12 * 4096;
  for (const bool coded : {false, true}) {
    for (const int64_t stage : {1, 3}) {
      for (const int64_t below : {0, 150'000, 300'000}) {
        run_world(2, [&](const std::shared_ptr<Group> &group) {
          const auto counted = unsealed_mixture(group, stage, below, coded, 0);
          ASSERT_TRUE(group->queue()->run(counted->seal()).ok());
          MemoryUse total{};
          MemoryUse staging{};
          ASSERT_TRUE(counted->memory(ZERO_MEMORY_TOTAL, &total).ok() && counted->memory(ZERO_MEMORY_STAGING, &staging).ok());
          const int64_t mine = total.formula_nbytes + total.constant_nbytes - staging.constant_nbytes;
          int64_t all = 0;
          ASSERT_TRUE(group->queue()->run(all_reduce(*group, &mine, &all, 1, DType::i64, ReduceOp::sum)).ok());
          const auto seal = [&](int64_t limit) {
            const auto again = unsealed_mixture(group, stage, below, coded, limit);
            return group->queue()->run(again->seal()).code();
          };
          EXPECT_EQ(seal(all), ZERO_OK) << "stage " << stage << " below " << below << " coded " << coded;
          EXPECT_EQ(seal(all - 2 * kPages), ZERO_E_OUT_OF_MEMORY) << "stage " << stage << " below " << below << " coded " << coded;
        });
      }
    }
  }
}

/// Ranks 0 and 1 are in one container, 2 and 3 in another, and the host has room for all.
MemoryOffer offer_in_containers(int64_t rank, int64_t first_nbytes, int64_t second_nbytes) {
  return {100'000'000, rank < 2 ? first_nbytes : second_nbytes, rank < 2 ? uint64_t{7} : uint64_t{8}};
}

TEST(MemoryNeed, RanksOfAControlGroupShareWhatItHasLeft) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    constexpr MemoryNeed kNeed{16'000'000, 10'000'000, 7'000'000, 4'000'000};
    const auto check = [&](int64_t stage, const MemoryOffer &offer, int64_t limit = 0) {
      return group->queue()->run(check_memory(*group, {}, kNeed, stage, limit, offer));
    };
    EXPECT_TRUE(check(1, offer_in_containers(group->rank(), 20'000'000, 20'000'000)).ok());
    const Status status = check(1, offer_in_containers(group->rank(), 20'000'000, 19'000'000));
    EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY);
    EXPECT_NE(std::strstr(status.text(),
                          "stage 1 needs 20.00 MB in the control group of rank 2 (its ranks there: 2), but 19.00 MB are available"),
              nullptr)
        << status.text();
    EXPECT_TRUE(check(2, offer_in_containers(group->rank(), 20'000'000, 19'000'000)).ok());
    // A limit that the caller set counts instead.
    EXPECT_TRUE(check(1, offer_in_containers(group->rank(), 0, 0), 40'000'000).ok());
    EXPECT_EQ(check(0, offer_in_containers(group->rank(), 20'000'000, 20'000'000), 40'000'000).code(), ZERO_E_OUT_OF_MEMORY);
    // Without control groups their key is that of all ranks, and there is no limit.
    EXPECT_TRUE(check(0, {64'000'000, std::numeric_limits<int64_t>::max(), 0}).ok());
    EXPECT_EQ(check(0, {63'000'000, std::numeric_limits<int64_t>::max(), 0}).code(), ZERO_E_OUT_OF_MEMORY);
  });
}

}  // namespace
}  // namespace zero::test::memory_need_test
