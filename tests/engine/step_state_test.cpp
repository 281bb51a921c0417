/// @file What goes on from step to step, where the host decides. Devices that decide: device_steps_test.cpp.
#include "engine/compute/step_state.h"

#include <gtest/gtest.h>

namespace zero::test::step_state_test {
namespace {

constexpr kernels::DecisionRules kSkips{
    .skips_nonfinite = 1,
    .loss_scale = {.dynamic = 1, .window = 2, .hysteresis = 1, .backoff = 0.5, .growth = 2, .least = 1, .most = 1024}};

TEST(StepState, CountsStepsThatWereAppliedAndThoseThatWereSkipped) {
  StepState run({.value = 64}, nullptr);
  run.decide(kSkips, false, 0);
  EXPECT_EQ(run.known().skips, 0);
  run.count();
  run.decide(kSkips, true, 0);
  EXPECT_EQ(run.known().skips, 1);
  EXPECT_EQ(run.known().applied_count, 1);
  EXPECT_EQ(run.known().skipped_count, 1);
  EXPECT_EQ(run.most_applied_count(), 1);
}

TEST(StepState, LossScaleFollowsDecisions) {
  StepState run({.value = 64}, nullptr);
  run.decide(kSkips, true, 0);
  EXPECT_EQ(*run.loss_scale(), 32);
  run.decide(kSkips, false, 0);
  EXPECT_EQ(run.known().grad_factor, 1.0F / 32);
  run.decide(kSkips, false, 0);
  EXPECT_EQ(*run.loss_scale(), 64);
}

TEST(StepState, EditsStayUntilRanksHaveCompared) {
  StepState run({.value = 64}, nullptr);
  EXPECT_FALSE(run.edited());
  run.edit().applied_count = 10;
  EXPECT_TRUE(run.edited());
  run.tell();
  EXPECT_TRUE(run.learn().ok());
  EXPECT_EQ(run.known().applied_count, 10);
  run.compared();
  EXPECT_FALSE(run.edited());
}

}  // namespace
}  // namespace zero::test::step_state_test
