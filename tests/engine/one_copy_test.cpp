/// @file One copy of whole parameters for all ranks of a host: the same bits as with a copy per rank, a copy's memory and no gathers.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <string>
#include <tuple>

namespace zero::test::one_copy_test {
namespace {

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 70'000};
  return model;
}

Manner manner_of(int64_t stage, bool one_copy = true) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  manner.one_copy = one_copy;
  return manner;
}

Recipe recipe_of(DType dtype, int64_t master, bool coded = false, int64_t frozen_every = 0) {
  Recipe recipe;
  recipe.dtype = dtype;
  recipe.master = master;
  recipe.coded = coded;
  recipe.frozen_every = frozen_every;
  return recipe;
}

class OneCopy : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(StageAndRanks, OneCopy, testing::Combine(testing::Values(1, 2), testing::Values(1, 2, 3, 4)));

TEST_P(OneCopy, HasTheBitsOfACopyPerRank) {
  const auto [stage, ranks] = GetParam();
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    Every every(7);
    for (const Recipe &recipe :
         {recipe_of(DType::f32, 0), recipe_of(DType::bf16, ZERO_MASTER_F32), recipe_of(DType::bf16, ZERO_MASTER_NONE),
          recipe_of(DType::bf16, ZERO_MASTER_REMAINDER), recipe_of(DType::f32, ZERO_MASTER_F32, true, 2)}) {
      Model model = model_of(ranks);
      model.recipe = recipe;
      for (int i = 0; i < 6; ++i) {
        if (!every.next()) continue;
        Manner manner = manner_of(stage, false);
        manner.overlap = i % 2 == 1;
        manner.norm = i < 3;
        manner.source = i % 3;
        const Outcome expected = train(group, model, manner);
        manner.one_copy = true;
        const Outcome outcome = train(group, model, manner);
        EXPECT_EQ(differing(expected, outcome), 0) << model.text() << manner.text();
      }
    }
  });
}

TEST_P(OneCopy, IsKeptByRankZeroAndNothingIsGathered) {
  const auto [stage, ranks] = GetParam();
  if (ranks == 1) return;  // a world of one has one copy anyway
  std::array<std::atomic<void *>, 4> addresses{};
  std::barrier all_ranks(ranks);
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    const Model model = model_of(ranks);
    const auto rank = static_cast<size_t>(group->rank());
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    const int64_t before = optimizer->traffic(OperationKind::all_gather).sent_elements;
    for (int64_t step = 0; step < 3; ++step) train_step(*optimizer, model, manner_of(stage), step);
    EXPECT_EQ(optimizer->traffic(OperationKind::all_gather).sent_elements, before);
    MemoryUse use{};
    ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM, &use).ok());
    constexpr int64_t kElements = 74'041;
    EXPECT_EQ(use.formula_nbytes, rank == 0 ? 4 * kElements : 0);
    EXPECT_LE(use.now_nbytes, use.formula_nbytes + use.constant_nbytes);
    EXPECT_LE(use.constant_nbytes, 8192);
    EXPECT_NE(optimizer->describe().find("one copy of parameters"), std::string::npos) << optimizer->describe();
    void *data = nullptr;
    ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(4, nullptr, 0, &data)).ok());
    addresses[rank] = data;
    all_ranks.arrive_and_wait();
    EXPECT_EQ(addresses[rank], addresses[0]);
    ASSERT_TRUE(optimizer->param_release(4).ok());
  });
}

TEST_P(OneCopy, IsSummedInOnePassWhereACopyPerRankIs) {
  const auto [stage, ranks] = GetParam();
  if (ranks == 1) return;  // nothing is summed
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    Manner manner = manner_of(stage);
    manner.norm = false;
    const std::string text = make_optimizer(group, model_of(ranks), manner)->describe();
    const char *way = stage == 1 ? "one pass over all ranks' memory: sum, update the one copy" : "reduce-scatter, update the one copy";
    EXPECT_NE(text.find(way), std::string::npos) << text;
  });
}

TEST_P(OneCopy, TakesWhatOneRankEditedBeforeBegin) {
  const auto [stage, ranks] = GetParam();
  std::barrier all_ranks(ranks);
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    Model model = model_of(ranks);
    model.recipe = recipe_of(DType::bf16, ZERO_MASTER_F32);
    const auto optimizer = make_optimizer(group, model, manner_of(stage));
    begin_training(*optimizer, model, manner_of(stage));
    train_step(*optimizer, model, manner_of(stage), 0);
    all_ranks.arrive_and_wait();
    if (group->rank() == ranks - 1) {
      void *data = nullptr;
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(3, nullptr, 0, &data)).ok());
      for (int i = 0; i < 1024; ++i) static_cast<uint16_t *>(data)[i] = 0x3fc0;  // 1.5
      ASSERT_TRUE(optimizer->param_release(3).ok());
    }
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).ok());
    std::vector<float> masters(1024);
    ASSERT_TRUE(run_task(*optimizer, optimizer->read(3, ZERO_SLOT_MASTER, 0, masters.data(), 1024)).ok());
    for (const float master : masters) ASSERT_EQ(master, 1.5F);
  });
}

TEST_P(OneCopy, IsVerifiedByTheRankThatUpdatesIt) {
  const auto [stage, ranks] = GetParam();
  std::barrier all_ranks(ranks);
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    const Model model = model_of(ranks);
    Manner manner = manner_of(stage);
    manner.verify_every = 1;
    const auto optimizer = begun_optimizer(group, model, manner);
    train_step(*optimizer, model, manner, 0);
    zero_verify_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->verify(&result)).ok());
    EXPECT_EQ(result.found, ZERO_FINDING_NONE);
    EXPECT_EQ(result.replica_nbytes, 0);
    all_ranks.arrive_and_wait();
    void *data = nullptr;
    ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(4, nullptr, 0, &data)).ok());
    ASSERT_TRUE(optimizer->param_release(4).ok());
    if (group->rank() == 0) static_cast<std::byte *>(data)[4 * 69'999] ^= std::byte{1};
    all_ranks.arrive_and_wait();
    ASSERT_TRUE(run_task(*optimizer, optimizer->verify(&result)).ok());
    EXPECT_EQ(result.found, ZERO_FINDING_SHARD);
    EXPECT_EQ(result.chunk_count, 1);
    EXPECT_EQ(result.param, 4);
    EXPECT_EQ(result.slot, ZERO_SLOT_PARAM);
    EXPECT_LE(result.offset, 69'999);
    EXPECT_GT(result.offset + result.count, 69'999);
  });
}

TEST(OneCopyRefused, InStagesWithoutWholeParametersOfOneOwner) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {0, 3}) {
      Config config = make_config(model_of(2), manner_of(stage, false));
      ASSERT_TRUE(config.set_i64(ZERO_KEY_ONE_COPY, 1).ok());
      std::shared_ptr<Optimizer> optimizer;
      const Status status = Optimizer::create(group, config, &optimizer);
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
      EXPECT_NE(std::string(status.text()).find("ZERO_KEY_ONE_COPY"), std::string::npos);
    }
  });
}

}  // namespace
}  // namespace zero::test::one_copy_test
