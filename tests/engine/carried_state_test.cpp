/// @file Carried values: a step begins with what the newest step that was kept has left.
#include "engine/gradients/carried_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace zero::test::carried_state_test {
namespace {

/// Three runs, of which one is empty.
class OpenedState : public testing::Test {
 protected:
  OpenedState() {
    EXPECT_TRUE(Arena::create_private({&hook_, &accounting_}, ZERO_MEMORY_WORKSPACE, CarriedState::nbytes(kCounts), &memory_).ok());
    state_.open(kCounts, memory_);
  }
  std::vector<float> values(int64_t run) const { return {state_.values(run), state_.values(run) + state_.count(run)}; }
  /// A step that leaves this value in all elements of a run.
  void step(int64_t run, float value, bool keep) {
    std::fill_n(state_.change(run).to, state_.count(run), value);
    state_.end_step(keep, false);
  }

  static constexpr std::array<int64_t, 3> kCounts = {3, 0, 257};
  AllocatorHook hook_{};
  Accounting accounting_;
  Arena memory_;
  CarriedState state_;
};

TEST_F(OpenedState, BeginsWithZerosAndHasRoomForTwoOfEach) {
  EXPECT_EQ(CarriedState::nbytes(kCounts), 2 * (64 + 1088));
  EXPECT_TRUE(state_.kept() && state_.initial());
  for (const int64_t run : {0, 1, 2}) EXPECT_EQ(values(run), std::vector<float>(static_cast<size_t>(kCounts[static_cast<size_t>(run)])));
  CarriedState none;
  none.open(std::array<int64_t, 2>{}, memory_);
  EXPECT_FALSE(none.kept());
}

TEST_F(OpenedState, KeepsTheValuesBeforeASkippedStep) {
  step(0, 1, true);
  step(0, 2, false);
  EXPECT_EQ(values(0), (std::vector<float>{1, 1, 1}));
  // A run that a step does not reduce stays.
  step(2, 3, true);
  EXPECT_EQ(values(0), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(values(2), std::vector<float>(257, 3));
}

TEST_F(OpenedState, LetsALaterReductionBeginWithWhatTheFirstLeft) {
  step(0, 1, true);
  EXPECT_EQ(state_.edit(0)[2], 1);
  state_.edit(0)[2] += 4;
  const auto [from, to] = state_.change(0);
  EXPECT_EQ(from, to);
  EXPECT_EQ(to[2], 5);
  EXPECT_EQ(values(0)[2], 1);
  state_.end_step(true, false);
  EXPECT_EQ(values(0)[2], 5);
}

TEST_F(OpenedState, FollowsTheLossScale) {
  step(0, 3, true);
  state_.follow_loss_scale(8);
  EXPECT_EQ(values(0), (std::vector<float>{24, 24, 24}));
  EXPECT_EQ(state_.loss_scale(), 8);
  state_.note_written(32);
  state_.follow_loss_scale(4);
  EXPECT_EQ(values(0), (std::vector<float>{3, 3, 3}));
}

TEST_F(OpenedState, IsInitialUntilAStepIsKeptAndAfterItForgets) {
  step(0, 1, false);
  EXPECT_TRUE(state_.initial());
  step(0, 1, true);
  EXPECT_FALSE(state_.initial());
  state_.end_step(false, true);
  EXPECT_FALSE(state_.initial());
  state_.forget();
  EXPECT_TRUE(state_.initial());
  EXPECT_EQ(values(0), (std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace zero::test::carried_state_test
