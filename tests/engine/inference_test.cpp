/// @file Algorithm "none": parameters only, for evaluation and inference. They are sharded and gathered as in training, and nothing else is
/// kept.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>

namespace zero::test::inference_test {
namespace {

class Inference : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(StageRanks, Inference, testing::Combine(testing::Range<int64_t>(0, 4), testing::Values(1, 3)));

TEST_P(Inference, KeepsParametersAndNothingElse) {
  const auto [stage, ranks] = GetParam();
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 40, 0, 5000};
  model.recipe.dtype = DType::bf16;
  run_world(ranks, [&, stage = stage, ranks = ranks](const std::shared_ptr<Group> &group) {
    Config config;
    ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
    ASSERT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, "none").ok());
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    int64_t id = 0;
    for (const int64_t count : model.counts) {
      const std::string name = "p" + std::to_string(id + count);
      ASSERT_TRUE(optimizer->add_param(nullptr, name.c_str(), ZERO_DTYPE_BF16, &count, 1, &id).ok());
    }
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    Manner manner;
    manner.source = ZERO_SOURCE_SHARDS;
    begin_training(*optimizer, model, manner);
    for (int pass = 0; pass < 2; ++pass) {
      for (id = 0; id < model.tensors(); ++id) {
        const int64_t count = model.counts[static_cast<size_t>(id)];
        void *data = nullptr;
        ASSERT_TRUE(optimizer->queue()->run(optimizer->param_acquire(id, nullptr, 0, &data)).ok());
        std::vector<float> first;
        for (int64_t k = 0; k < count; ++k) first.push_back(first_value_at(model, id, k));
        const std::vector<std::byte> wanted = encode(first, DType::bf16);
        EXPECT_TRUE(count == 0 || std::memcmp(data, wanted.data(), wanted.size()) == 0) << "tensor " << id;
        ASSERT_TRUE(optimizer->param_release(id).ok());
      }
    }
    void *data = nullptr;
    int64_t accumulate = 0;
    EXPECT_EQ(optimizer->grad_acquire(0, &data, &accumulate).code(), ZERO_E_STATE);
    EXPECT_EQ(optimizer->queue()->run(optimizer->step(nullptr)).code(), ZERO_E_STATE);
    EXPECT_EQ(optimizer->queue()->run(optimizer->micro_step(ZERO_MICRO_STEP_LAST)).code(), ZERO_E_STATE);
    int64_t slots = 0;
    ASSERT_TRUE(optimizer->slot_count(0, &slots).ok());
    EXPECT_EQ(slots, 1);
    MemoryUse param{};
    MemoryUse all{};
    ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM, &param).ok());
    ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_TOTAL, &all).ok());
    EXPECT_EQ(all.formula_nbytes, param.formula_nbytes);
    const bool whole = stage < 3 || ranks == 1;
    EXPECT_EQ(param.formula_nbytes == 2 * 8040, whole);
    EXPECT_TRUE(whole || param.formula_nbytes < 2 * (8040 / 3 + 512));
  });
}

}  // namespace
}  // namespace zero::test::inference_test
