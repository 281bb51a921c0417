/// @file Stage 1 in one pass over the memory of all ranks: when it is used, when it is not, and that nobody can tell by the numbers.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <limits>

namespace zero::test {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

Model model_of(int64_t ranks, DType dtype = DType::f32) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 70'000};
  model.recipe.dtype = dtype;
  return model;
}

Manner manner_of(int64_t stage, bool norm = false, bool overlap = false) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  manner.norm = norm;
  manner.overlap = overlap;
  return manner;
}

bool takes_one_pass(const Optimizer &optimizer) {
  return optimizer.describe().find("step: one pass over all ranks' memory") != std::string::npos;
}

TEST(OnePass, IsTakenInStageOneWhenNothingNeedsReductionsBefore) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Model model = model_of(2);
    EXPECT_TRUE(takes_one_pass(*make_optimizer(group, model, manner_of(1))));
    EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(1, true))));
    EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(1, false, true))));
    for (const int64_t stage : {0, 2, 3}) EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(stage))));
    model.divisor = ZERO_DIVISOR_WEIGHTS;
    EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(1))));
    model.divisor = ZERO_DIVISOR_ONE;
    model.recipe.clip_norm = 1;
    EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(1))));
  });
}

TEST(OnePass, MovesAndCountsWhatTheComposedStepDoes) {
  for (const int64_t ranks : {2, 3, 4}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const Model model = model_of(ranks);
      Traffic sent[2][2];
      for (const bool norm : {false, true}) {
        const auto optimizer = make_optimizer(group, model, manner_of(1, norm));
        begin_training(*optimizer, model, manner_of(1, norm));
        const Traffic before[2] = {optimizer->traffic(OperationKind::reduce_scatter), optimizer->traffic(OperationKind::all_gather)};
        (void)train_step(*optimizer, model, manner_of(1, norm), 0);
        const Traffic after[2] = {optimizer->traffic(OperationKind::reduce_scatter), optimizer->traffic(OperationKind::all_gather)};
        for (int i = 0; i < 2; ++i) {
          sent[norm ? 1 : 0][i] = {after[i].call_count - before[i].call_count, after[i].sent_elements - before[i].sent_elements,
                                   after[i].sent_nbytes - before[i].sent_nbytes};
        }
      }
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(sent[0][i].call_count, sent[1][i].call_count);
        EXPECT_EQ(sent[0][i].sent_elements, sent[1][i].sent_elements);
        EXPECT_EQ(sent[0][i].sent_nbytes, sent[1][i].sent_nbytes);
        EXPECT_GT(sent[0][i].sent_nbytes, 0);
      }
    });
  }
}

/// One step from zero gradients but for one element, which is `values[rank]` on each rank.
std::vector<std::byte> step_with(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, std::vector<float> values,
                                 zero_step_result &result) {
  const auto optimizer = begun_optimizer(group, model, manner);
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<float> gradient(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
    if (id == 4) gradient[69'999] = values[static_cast<size_t>(group->rank())];
    const std::vector<std::byte> bytes = encode(gradient, model.grad_dtype(id));
    EXPECT_TRUE(optimizer->grad_ready(id, bytes.data(), 0, std::ssize(gradient)).ok());
  }
  const Status status = run_task(*optimizer, optimizer->step(&result));
  EXPECT_TRUE(status.ok()) << status.text();
  return read_slots(*optimizer, model);
}

struct Case {
  DType dtype;
  int64_t divisor;
  std::vector<float> values;
  bool skips;
};

/// Sums that overflow skip the step although every contribution is finite; large ones that do not are summed as ever.
TEST(OnePass, IsLeftWhereSumsMightOverflow) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Case cases[] = {
      {DType::f32, ZERO_DIVISOR_RANKS, {0.7F * kLargest, 0.7F * kLargest}, true},
      {DType::f32, ZERO_DIVISOR_RANKS, {0.7F * kLargest, -0.6F * kLargest}, false},
      {DType::f32, ZERO_DIVISOR_RANKS, {0.3F * kLargest, 0.3F * kLargest}, false},
      {DType::f32, ZERO_DIVISOR_RANKS, {0.2F * kLargest, 0.2F * kLargest}, false},
      {DType::f32, ZERO_DIVISOR_ONE, {infinity, 1}, true},
      {DType::f32, ZERO_DIVISOR_ONE, {1, std::numeric_limits<float>::quiet_NaN()}, true},
      {DType::f16, ZERO_DIVISOR_ONE, {40'000, 30'000}, true},
      {DType::f16, ZERO_DIVISOR_RANKS, {40'000, 30'000}, false},
      {DType::f16, ZERO_DIVISOR_ONE, {16'000, 16'000}, false},
      {DType::bf16, ZERO_DIVISOR_ONE, {0.9F * kLargest, 0.2F * kLargest}, true},
      {DType::bf16, ZERO_DIVISOR_ONE, {0.4F * kLargest, 0.4F * kLargest}, false},
  };
  for (const Case &one : cases) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Model model = model_of(2, one.dtype);
      model.divisor = one.divisor;
      zero_step_result expected{};
      zero_step_result result{};
      const std::vector<std::byte> wanted = step_with(group, model, manner_of(0), one.values, expected);
      const std::vector<std::byte> got = step_with(group, model, manner_of(1), one.values, result);
      EXPECT_EQ(expected.skipped, one.skips ? 1 : 0) << dtype_name(one.dtype) << " " << one.values[0] << " " << one.values[1];
      EXPECT_EQ(result.skipped, expected.skipped);
      EXPECT_TRUE(got == wanted);
    });
  }
}

TEST(OnePass, SplitStepsReduceFirst) {
  run_world(3, [](const std::shared_ptr<Group> &group) {
    const Model model = model_of(3);
    const auto whole = make_optimizer(group, model, manner_of(1));
    const auto split = make_optimizer(group, model, manner_of(1));
    begin_training(*whole, model, manner_of(1));
    begin_training(*split, model, manner_of(1));
    for (int64_t step = 0; step < 3; ++step) {
      (void)train_step(*whole, model, manner_of(1), step);
      give_gradients(*split, model, manner_of(1), step);
      ASSERT_TRUE(run_task(*split, split->reduce(nullptr)).ok());
      // A call out of order changes nothing.
      ASSERT_EQ(run_task(*split, split->step(nullptr)).code(), ZERO_E_STATE);
      ASSERT_TRUE(run_task(*split, split->apply()).ok());
      ASSERT_TRUE(run_task(*split, split->gather()).ok());
    }
    EXPECT_TRUE(read_slots(*whole, model) == read_slots(*split, model));
  });
}

}  // namespace
}  // namespace zero::test
