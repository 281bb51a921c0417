/// @file Stops that are asked for while a device makes the steps.
#include "tests/engine/device_feed.h"
#include "tests/engine/rank_worlds.h"

#include <gtest/gtest.h>

namespace zero::test::device_stop_test {
namespace {

using StopsOnDevice = DeviceTest;

void ask_if(bool asks, Optimizer &optimizer, int64_t reason) {
  const int32_t status = asks ? optimizer.request_stop(reason) : ZERO_OK;
  EXPECT_EQ(status, ZERO_OK);
}

/// Alone, where nobody waits for the device, and with ranks that wait for theirs.
TEST_F(StopsOnDevice, AStepThatNobodyWaitsForReportsThemInItsResult) {
  for (const int64_t ranks : {1, 2}) {
    for (const Kind &kind : {kKinds[0], kKinds[1], kKinds[11]}) {
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto kept = make(group, kind, true);
        Feed feed(kind, group->rank());
        for (int64_t step = 0; step < 4; ++step) {
          const bool asked = step == 1 || step == 2;
          ask_if(asked && group->rank() == ranks - 1, *kept, 40 + step);
          feed.fill(step);
          feed.give(*kept);
          expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
          zero_step_result result = empty_result();
          expect_ok(kept->result(&result, feed.stream()), "result");
          EXPECT_EQ(result.stop_reason, asked ? 40 + step : 0) << kind.algorithm << " step " << step;
          EXPECT_EQ(result.skipped, step == 2 ? 1 : 0);
        }
      });
    }
  }
}

/// Runs of a graph do not look at the host. A request that waits keeps a step from becoming part of one.
TEST_F(StopsOnDevice, CapturedStepsRefuseThem) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    const auto plain_step = [&] {
      feed.fill(0);
      feed.give(*kept);
      zero_step_result result = empty_result();
      expect_ok(run_task(*kept, kept->step(&result, feed.stream())), "step");
      return result.stop_reason;
    };
    EXPECT_EQ(plain_step(), 0);
    EXPECT_EQ(kept->request_stop(5), ZERO_OK);
    caller_capture_begin(feed.stream());
    expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_UNSUPPORTED, "called with reason 5");
    caller_graph_destroy(caller_capture_end(feed.stream()));
    EXPECT_EQ(plain_step(), 5);
    feed.fill(0);
    caller_capture_begin(feed.stream());
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    caller_graph_destroy(caller_capture_end(feed.stream()));
    EXPECT_EQ(kept->request_stop(5), ZERO_E_UNSUPPORTED);
  });
}

}  // namespace
}  // namespace zero::test::device_stop_test
