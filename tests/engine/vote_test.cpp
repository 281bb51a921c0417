/// @file What the ranks of a step must have alike.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <functional>

namespace zero::test::vote_test {
namespace {

class VoteStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, VoteStages, testing::Range<int64_t>(0, 4));

/// Both values are named to both ranks.
TEST_P(VoteStages, WhatRanksSetDifferentlyIsAMismatch) {
  Model model;
  model.ranks = 2;
  model.counts = {300};
  Manner manner;
  manner.stage = GetParam();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto expect_mismatch = [&](const std::function<Status(Optimizer &)> &set, const char *mine, const char *other) {
      const auto optimizer = begun_optimizer(group, model, manner);
      ASSERT_TRUE(set(*optimizer).ok());
      const Status status = run_task(*optimizer, optimizer->step(nullptr));
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
      EXPECT_TRUE(contains(status, mine) && contains(status, other)) << status.text();
    };
    const int64_t rank = group->rank();
    expect_mismatch([rank](Optimizer &optimizer) { return optimizer.set_f64(0, ZERO_KEY_LR, rank == 0 ? 0.5 : 0.25); },
                    "rank 0 has ZERO_KEY_LR = 0.5 in set 0", "rank 1 has ZERO_KEY_LR = 0.25 in set 0");
    expect_mismatch([rank](Optimizer &optimizer) { return optimizer.set_i64(ZERO_KEY_STEP_COUNT, 4 + rank); },
                    "rank 0 has ZERO_KEY_STEP_COUNT = 4", "rank 1 has ZERO_KEY_STEP_COUNT = 5");
    expect_mismatch([rank](Optimizer &optimizer) { return optimizer.set_i64(ZERO_KEY_SKIPPED_COUNT, rank); },
                    "rank 0 has ZERO_KEY_SKIPPED_COUNT = 0", "rank 1 has ZERO_KEY_SKIPPED_COUNT = 1");
    expect_mismatch([rank](Optimizer &optimizer) { return optimizer.set_f64(0, ZERO_KEY_LOSS_SCALE, rank == 0 ? 2 : 4); },
                    "rank 0 has ZERO_KEY_LOSS_SCALE = 2", "rank 1 has ZERO_KEY_LOSS_SCALE = 4");
  });
}

/// Whatever the way of a step: without reductions before, with them, or with both on the progress thread.
TEST_P(VoteStages, AStepMeetsNoReduce) {
  Model model;
  model.ranks = 3;
  model.counts = {300, 5000};
  for (const bool norm : {false, true}) {
    for (const bool overlap : {false, true}) {
      Manner manner;
      manner.stage = GetParam();
      manner.norm = norm;
      manner.overlap = overlap;
      run_world(3, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, manner);
        give_gradients(*optimizer, model, manner, 0);
        const bool splits = group->rank() == 1;
        const Status status = run_task(*optimizer, splits ? optimizer->reduce(nullptr) : optimizer->step(nullptr));
        EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
        EXPECT_TRUE(contains(status, splits ? "rank 1 called zero_optimizer_reduce, but 2 of 3 ranks called zero_optimizer_step"
                                            : "called zero_optimizer_step, but 1 of 3 ranks called zero_optimizer_reduce"))
            << status.text();
      });
    }
  }
}

}  // namespace
}  // namespace zero::test::vote_test
