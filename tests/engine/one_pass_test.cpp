/// @file Stages 0 and 1 in one pass over the memory of all ranks: when it is used, when it is not, and that nobody can tell by the numbers.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <limits>

namespace zero::test::one_pass_test {
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

TEST(OnePass, IsTakenInStagesZeroAndOneWhenNothingNeedsReductionsBefore) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {0, 1}) {
      Model model = model_of(2);
      EXPECT_TRUE(takes_one_pass(*make_optimizer(group, model, manner_of(stage))));
      EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(stage, true))));
      EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(stage, false, true))));
      model.divisor = ZERO_DIVISOR_WEIGHTS;
      EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(stage))));
      model.divisor = ZERO_DIVISOR_ONE;
      model.recipe.clip_norm = 1;
      EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model, manner_of(stage))));
    }
    for (const int64_t stage : {2, 3}) EXPECT_FALSE(takes_one_pass(*make_optimizer(group, model_of(2), manner_of(stage))));
  });
}

/// What one step sends.
struct Sent {
  Traffic summed, gathered;
};

Sent sent_by_step(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  const auto optimizer = make_optimizer(group, model, manner);
  begin_training(*optimizer, model, manner);
  const auto sent = [&](OperationKind kind, const Traffic &before) {
    const Traffic now = optimizer->traffic(kind);
    return Traffic{now.call_count - before.call_count, now.sent_elements - before.sent_elements, now.sent_nbytes - before.sent_nbytes};
  };
  const Traffic summed = optimizer->traffic(OperationKind::reduce_scatter);
  const Traffic gathered = optimizer->traffic(OperationKind::all_gather);
  (void)train_step(*optimizer, model, manner, 0);
  return {sent(OperationKind::reduce_scatter, summed), sent(OperationKind::all_gather, gathered)};
}

void expect_same(const Traffic &a, const Traffic &b) {
  EXPECT_EQ(a.call_count, b.call_count);
  EXPECT_EQ(a.sent_elements, b.sent_elements);
  EXPECT_EQ(a.sent_nbytes, b.sent_nbytes);
  EXPECT_GT(a.sent_nbytes, 0);
}

TEST(OnePass, MovesAndCountsWhatOtherStepsDo) {
  for (const int64_t ranks : {2, 3, 4}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const Model model = model_of(ranks);
      const Sent whole = sent_by_step(group, model, manner_of(0));
      const Sent sharded = sent_by_step(group, model, manner_of(1));
      for (const int64_t stage : {0, 1}) {
        const Sent reduced = sent_by_step(group, model, manner_of(stage, true));
        expect_same(reduced.summed, stage == 0 ? whole.summed : sharded.summed);
        expect_same(reduced.gathered, stage == 0 ? whole.gathered : sharded.gathered);
      }
      expect_same(whole.summed, sharded.summed);
      constexpr int64_t kSlots = 3;  // of AdamW in fp32: parameter and two moments
      EXPECT_EQ(whole.gathered.sent_elements, kSlots * sharded.gathered.sent_elements);
      EXPECT_EQ(whole.gathered.sent_nbytes, kSlots * sharded.gathered.sent_nbytes);
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
      const std::vector<std::byte> wanted = step_with(group, model, manner_of(3), one.values, expected);
      EXPECT_EQ(expected.skipped, one.skips ? 1 : 0) << dtype_name(one.dtype) << " " << one.values[0] << " " << one.values[1];
      for (const int64_t stage : {0, 1}) {
        const std::vector<std::byte> got = step_with(group, model, manner_of(stage), one.values, result);
        EXPECT_EQ(result.skipped, expected.skipped) << "stage " << stage;
        EXPECT_TRUE(got == wanted) << "stage " << stage;
      }
    });
  }
}

/// In stage 0 what is reduced is then whole on every rank, and each updates all of it.
TEST(OnePass, SplitStepsReduceFirst) {
  for (const int64_t stage : {0, 1}) {
    for (const bool norm : {false, true}) {
      run_world(3, [stage, norm](const std::shared_ptr<Group> &group) {
        const Model model = model_of(3);
        const Manner manner = manner_of(stage, norm);
        const auto whole = begun_optimizer(group, model, manner);
        const auto split = begun_optimizer(group, model, manner);
        for (int64_t step = 0; step < 3; ++step) {
          (void)train_step(*whole, model, manner, step);
          give_gradients(*split, model, manner, step);
          ASSERT_TRUE(run_task(*split, split->reduce(nullptr)).ok());
          // A call out of order changes nothing.
          ASSERT_EQ(run_task(*split, split->step(nullptr)).code(), ZERO_E_STATE);
          ASSERT_TRUE(run_task(*split, split->apply()).ok());
          ASSERT_TRUE(run_task(*split, split->gather()).ok());
        }
        EXPECT_TRUE(read_slots(*whole, model) == read_slots(*split, model));
      });
    }
  }
}

}  // namespace
}  // namespace zero::test::one_pass_test
