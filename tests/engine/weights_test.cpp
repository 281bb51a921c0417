/// @file Weights of gradients: the formula to the bit, its range, what it sends, and sums of weights that cannot be divided by.
#include "tests/engine/bounded_training.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace zero::test::weights_test {
namespace {

/// In each stage.
class GradientWeights : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, GradientWeights, testing::Range<int64_t>(0, 4));

/// Also where hosts sum complete subtrees before anything crosses between them.
TEST_P(GradientWeights, GradientsAreThoseOfTheContractToTheBit) {
  int64_t trainings = 0;
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      for (const Model &model : weighted_models(ranks, dtype)) {
        Manner manner = random_manner(static_cast<uint64_t>(++trainings), ranks);
        manner.stage = GetParam();
        const int64_t per_host = ranks == 4 ? trainings % 2 * 2 : 0;
        manner.one_copy = manner.one_copy && per_host == 0;
        run_hosts(ranks, per_host, [&](const std::shared_ptr<Group> &group) {
          EXPECT_EQ(wrong_gradients(group, model, manner), 0) << model.text() << "\n" << manner.text() << "\nper host " << per_host;
        });
      }
    }
  }
}

/// One step in which all gradients of all ranks have one value. The weights differ over ranks and micro-steps.
zero_step_result step_with_one_value(Optimizer &optimizer, const Model &model, float value, double weight) {
  const std::vector<int32_t> &kinds = model.recipe.micro_steps;
  for (size_t micro = 0; micro < std::max<size_t>(kinds.size(), 1); ++micro) {
    if (!kinds.empty()) expect_ok(run_task(optimizer, optimizer.micro_step(kinds[micro])), "micro_step");
    const auto times = static_cast<double>(optimizer.group()->rank() + 2 * static_cast<int64_t>(micro) + 1);
    if (model.divisor == ZERO_DIVISOR_WEIGHTS) expect_ok(optimizer.set_weight(weight * times), "set_weight");
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const std::vector<float> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)]), value);
      const std::vector<std::byte> bytes = encode(values, model.grad_dtype(id));
      expect_ok(optimizer.grad_ready(id, bytes.data(), 0, std::ssize(values)), "grad_ready");
    }
  }
  zero_step_result result{};
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  return result;
}

/// Also where the product with the weight leaves the range of 16 bits, which must not count as an overflow.
TEST_P(GradientWeights, MeanOfOneGradientIsThatGradient) {
  struct Case {
    DType dtype;
    float value;
    double weight;
  };
  constexpr Case kCases[] = {
      {DType::f16, 1e-5F, 1e-3}, {DType::f16, 20, 4096}, {DType::f16, -60'000, 3e6}, {DType::bf16, 3e-38F, 1e-3}, {DType::bf16, 20, 0.3}};
  const std::vector<int32_t> sequences[] = {{}, {1, 0}, {2, 0}, {1, 2, 1, 0}};
  for (const int64_t ranks : {1, 2, 3, 4}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      for (const auto &[dtype, value, weight] : kCases) {
        const Recipe recipe{.dtype = dtype, .loss_scale = 65536, .overflow_step = 1000};  // so that the scale is dynamic
        const Model plain{.ranks = ranks, .counts = {300, 31}, .recipe = recipe};
        Manner manner;
        manner.stage = GetParam();
        manner.bucket_nbytes = 1024;
        manner.norm = ranks % 2 == 0;
        const auto expected = begun_optimizer(group, plain, manner);
        const zero_step_result right = step_with_one_value(*expected, plain, value, weight);
        EXPECT_EQ(right.loss_scale, 65536);
        for (const std::vector<int32_t> &sequence : sequences) {
          Model weighted = plain;
          weighted.divisor = ZERO_DIVISOR_WEIGHTS;
          weighted.recipe.micro_steps = sequence;
          const auto optimizer = begun_optimizer(group, weighted, manner);
          const zero_step_result result = step_with_one_value(*optimizer, weighted, value, weight);
          EXPECT_EQ(result.skipped, 0) << weighted.text();
          EXPECT_EQ(result.loss_scale, right.loss_scale) << weighted.text();
          EXPECT_EQ(result.grad_norm, right.grad_norm) << weighted.text();
          EXPECT_TRUE(read_slots(*optimizer, weighted) == read_slots(*expected, plain)) << value << " by " << weight << " " << weighted.text();
        }
      }
    });
  }
}

TEST_P(GradientWeights, ThatAddUpToZeroAreAnErrorAndTheNextStepWorks) {
  Model model;
  model.ranks = 2;
  model.counts = {300};
  model.divisor = ZERO_DIVISOR_WEIGHTS;
  Manner manner;
  manner.stage = GetParam();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    ASSERT_TRUE(optimizer->set_weight(0).ok());
    const std::vector<float> poison(300, std::numeric_limits<float>::quiet_NaN());
    ASSERT_TRUE(optimizer->grad_ready(0, poison.data(), 0, 300).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(differing(before, read_slot(*optimizer, model, ZERO_SLOT_PARAM)), 0);
    // A rank without data does not disturb the others.
    if (group->rank() == 1) {
      ASSERT_TRUE(optimizer->set_weight(0).ok());
    }
    const std::vector<float> ones(300, 1.0F);
    ASSERT_TRUE(optimizer->grad_ready(0, group->rank() == 1 ? poison.data() : ones.data(), 0, 300).ok());
    EXPECT_EQ(optimizer->set_weight(1).code(), ZERO_E_STATE);
    zero_step_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(result.grad_norm, std::sqrt(300.0));
    EXPECT_EQ(optimizer->set_weight(-1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->set_weight(std::numeric_limits<double>::infinity()).code(), ZERO_E_INVALID_ARGUMENT);
    // It would be that of no micro-step.
    ASSERT_TRUE(optimizer->set_weight(2).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->micro_step(ZERO_MICRO_STEP_LAST)).code(), ZERO_E_STATE);
    ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(ZERO_MICRO_STEP_LAST)).ok());
    ASSERT_TRUE(optimizer->set_weight(2).ok());
  });
}

/// Gradients divided by infinity would be zeros that nobody gave.
TEST_P(GradientWeights, ThatAddUpToMoreThanFp32HasAreAnErrorAndTheNextStepWorks) {
  for (const int64_t ranks : {1, 2}) {
    const Model model{.ranks = ranks, .counts = {300}, .divisor = ZERO_DIVISOR_WEIGHTS};
    Manner manner;
    manner.stage = GetParam();
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
      const std::vector<float> small(300, 0x1p-100F);
      for (const double weight : {0x1p127, 0x1p126}) {
        for (const int32_t kind : {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST}) {
          ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(kind)).ok());
          ASSERT_TRUE(optimizer->set_weight(weight / static_cast<double>(ranks)).ok());
          ASSERT_TRUE(optimizer->grad_ready(0, small.data(), 0, 300).ok());
        }
        zero_step_result result{};
        const Status status = run_task(*optimizer, optimizer->step(&result));
        EXPECT_EQ(status.code(), weight > 0x1p126 ? ZERO_E_INVALID_ARGUMENT : ZERO_OK) << status.text();
        EXPECT_EQ(differing(before, read_slot(*optimizer, model, ZERO_SLOT_PARAM)) == 0, !status.ok());
        EXPECT_EQ(result.grad_norm, status.ok() ? 0x1p-100 * std::sqrt(300.0) : 0);
      }
    });
  }
}

/// What lies there was multiplied by the weight, and what a caller adds would not be.
TEST_P(GradientWeights, ElementsThatWereGivenCannotBeAddedToInPlace) {
  for (const bool tied : {false, true}) {
    Model model{.ranks = 2, .counts = {300, 300}, .divisor = ZERO_DIVISOR_WEIGHTS, .recipe = {.tied = tied}};
    Manner manner;
    manner.stage = GetParam();
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      const std::vector<float> ones(300, 1.0F);
      ASSERT_TRUE(optimizer->grad_ready(0, ones.data(), 0, 100).ok());
      const Status refused = optimizer->grad_acquire(0, nullptr, nullptr);
      EXPECT_EQ(refused.code(), ZERO_E_UNSUPPORTED);
      EXPECT_TRUE(contains(refused, "given before, from memory of the caller")) << refused.text();
      EXPECT_EQ(contains(refused, "tied"), tied) << refused.text();
      ASSERT_TRUE(optimizer->grad_ready(0, ones.data(), 100, 200).ok());
      ASSERT_TRUE(optimizer->grad_ready(1, ones.data(), 0, 300).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    });
  }
}

/// Contributions travel in their own dtype, whatever they are multiplied by.
TEST_P(GradientWeights, AddNothingToWhatContributionsSend) {
  for (const int64_t ranks : {1, 2, 4}) {
    Manner manner;
    manner.stage = GetParam();
    manner.bucket_nbytes = 16'384;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      std::vector<Traffic> sent;
      for (const int64_t divisor : {ZERO_DIVISOR_RANKS, ZERO_DIVISOR_WEIGHTS}) {
        const Model model{.ranks = ranks,
                          .counts = {4096, 100, 3000, 0, 10'000, 256},
                          .divisor = divisor,
                          .weight_unit = 4096,
                          .recipe = {.dtype = DType::f16}};
        const auto optimizer = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step < 2; ++step) train_step(*optimizer, model, manner, step);
        sent.push_back(optimizer->traffic(OperationKind::reduce_scatter));
      }
      EXPECT_EQ(sent[0].sent_elements > 0, group->size() > 1);
      EXPECT_EQ(sent[1].call_count, sent[0].call_count);
      EXPECT_EQ(sent[1].sent_elements, sent[0].sent_elements);
      EXPECT_EQ(sent[1].sent_nbytes, sent[0].sent_nbytes);
      EXPECT_EQ(sent[1].sent_nbytes, 2 * sent[1].sent_elements);
    });
  }
}

}  // namespace
}  // namespace zero::test::weights_test
