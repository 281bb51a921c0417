/// @file Steps on a device that leave tensors untouched, plain and in CUDA graphs: they have the
/// bits of steps on the host.
#include "tests/engine/device_feed.h"
#include "tests/engine/rank_worlds.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace zero::test::device_untouched_test {
namespace {

using UntouchedOnDevice = DeviceTest;

constexpr Kind kCounted[] = {
    {.algorithm = "adamw", .average = true, .untouched = true},
    {.algorithm = "adam", .dtype = DType::bf16, .stochastic = true, .untouched = true},
    {.algorithm = "sgd", .dtype = DType::f16, .dynamic = true, .average = true, .untouched = true},
    {.algorithm = "adagrad", .untouched = true},
    {.algorithm = "lion", .average = true, .untouched = true},
    {.algorithm = "adamw", .dtype = DType::bf16, .clip_norm = 0.5, .dynamic = true, .average = true, .untouched = true, .coded = true},
    {.algorithm = "lamb", .dtype = DType::bf16, .average = true, .untouched = true},
    {.algorithm = "muon", .dtype = DType::bf16, .average = true, .untouched = true},
};

/// Tensors that a rank fills in a step: a bit for each. Some nobody fills, some one rank.
uint64_t filled_in(int64_t step, int64_t rank, int64_t ranks) {
  const auto of_all = static_cast<uint64_t>((step * 11 + 5) % 32);
  const auto of_one = static_cast<uint64_t>((step * 7 + 3) % 32);
  return of_all | (step % ranks == rank ? of_one : 0);
}

void give_on_host(Optimizer &optimizer, const Kind &kind, int64_t step, uint64_t filled) {
  for (int64_t id = 0; id < kTensors; ++id) {
    const std::vector<std::byte> grad = gradient(kind, step, id, optimizer.group()->rank());
    if ((filled >> id & 1) != 0) expect_ok(optimizer.grad_ready(id, grad.data(), 0, kCounts[id]), "grad_ready");
  }
}

zero_step_result step_host(Optimizer &optimizer, const Kind &kind, int64_t step, uint64_t filled) {
  give_on_host(optimizer, kind, step, filled);
  zero_step_result result = empty_result();
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  return result;
}

void give_feed(Optimizer &optimizer, const Feed &feed, uint64_t filled) {
  expect_ok(optimizer.check_stream(feed.stream()), "check_stream");
  for (int64_t id = kTensors - 1; id >= 0; --id) {
    if ((filled >> id & 1) != 0) expect_ok(optimizer.grad_ready(id, feed.data(id), 0, kCounts[id], feed.stream()), "grad_ready");
  }
}

zero_step_result step_both(Optimizer &host, Optimizer &kept, Feed &feed, const Kind &kind, int64_t step, uint64_t filled) {
  feed.fill(step);
  give_feed(kept, feed, filled);
  if (step % 4 == 3) {
    step_in_parts(kept, nullptr, feed.stream());
  } else {
    expect_ok(run_task(kept, kept.step(nullptr, feed.stream())), "step");
  }
  return step_host(host, kind, step, filled);
}

int64_t count_of(Optimizer &optimizer, int64_t id, void *stream = nullptr) {
  int64_t count = -1;
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_UPDATE_COUNT, 0, &count, 1, stream)), "read");
  return count;
}

/// Alone, and with ranks that wait for their devices.
TEST_F(UntouchedOnDevice, TensorsByChanceHaveTheBitsOfTheHost) {
  for (const int64_t ranks : few_tests() ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 2, 3}) {
    for (const int64_t overlap : ranks == 3 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}) {
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        for (const Kind &kind : kCounted) {
          const auto host = make(group, kind, false, overlap);
          const auto kept = make(group, kind, true, overlap);
          Feed feed(kind, group->rank());
          zero_step_result expected{};
          for (int64_t step = 0; step < 11; ++step) {
            expected = step_both(*host, *kept, feed, kind, step, filled_in(step, group->rank(), ranks));
            for (Optimizer *each : {host.get(), kept.get()}) {
              if (step == 5) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 40), "set_i64");
              if (step != 9) continue;
              const int64_t written = 3;
              expect_ok(run_task(*each, each->write(4, ZERO_SLOT_UPDATE_COUNT, 0, &written, group->rank() == 0 ? 1 : 0)), "write");
              EXPECT_EQ(count_of(*each, 4), 3);
            }
          }
          expect_alike(*host, *kept, expected, feed.stream(), kind);
          EXPECT_GT(expected.skipped_total, 0) << kind.algorithm;
        }
      });
    }
  }
}

/// Runs that are skipped count nothing. Plain steps fill other tensors in between.
TEST_F(UntouchedOnDevice, GraphsCountTheUpdatesOfTheTensorsThatTheyFill) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : kCounted) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      constexpr uint64_t kInGraph = 0b01010;
      zero_step_result expected{};
      for (const uint64_t filled : {uint64_t{0b11111}, uint64_t{0b10001}, kInGraph})
        expected = step_both(*host, *kept, feed, kind, static_cast<int64_t>(filled % 2), filled);
      caller_capture_begin(feed.stream());
      give_feed(*kept, feed, kInGraph);
      expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr) << kind.algorithm;
      int64_t skipped = 0;
      for (int64_t step = 4; step < 20; ++step) {
        if (step % 5 == 4) {
          expected = step_both(*host, *kept, feed, kind, step, filled_in(step, 0, 1));
        } else {
          feed.fill(step);
          caller_replay(graph, feed.stream());
          expected = step_host(*host, kind, step, kInGraph);
        }
        skipped += expected.skipped;
        zero_step_result result = empty_result();
        expect_ok(kept->result(&result, feed.stream()), "result");
        EXPECT_EQ(result.step, expected.step);
        if (step == 11) {
          for (Optimizer *each : {host.get(), kept.get()}) {
            expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 2), "set_i64");
            const int64_t written = 70;
            expect_ok(run_task(*each, each->write(3, ZERO_SLOT_UPDATE_COUNT, 0, &written, 1)), "write");
            expect_ok(each->refresh(each == kept.get() ? feed.stream() : nullptr), "refresh");
          }
          EXPECT_EQ(count_of(*kept, 1), 2);
          EXPECT_EQ(count_of(*kept, 3), 70);
        }
      }
      EXPECT_GT(skipped, 0);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      caller_graph_destroy(graph);
    }
  });
}

/// What is set reaches the runs that follow, in the order of the stream.
TEST_F(UntouchedOnDevice, TheStepCountReachesGraphsWithRefresh) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kCounted[0];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    constexpr uint64_t kFilled = 0b10010;
    (void)step_both(*host, *kept, feed, kind, 0, kFilled);
    expect_ok(kept->set_i64(ZERO_KEY_STEP_COUNT, 500), "set_i64");  // the capture does not hold it
    caller_capture_begin(feed.stream());
    give_feed(*kept, feed, kFilled);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    caller_replay(graph, feed.stream());
    (void)step_host(*host, kind, 0, kFilled);
    zero_step_result expected{};
    for (const int64_t count : {30, 60}) {
      zero_step_result result = empty_result();
      expect_ok(kept->result(&result, feed.stream()), "result");
      for (Optimizer *each : {host.get(), kept.get()}) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, count), "set_i64");
      expect_ok(kept->refresh(feed.stream()), "refresh");
      for (int64_t run = 0; run < 2; ++run) {
        caller_replay(graph, feed.stream());
        expected = step_host(*host, kind, 0, kFilled);
      }
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      EXPECT_EQ(count_of(*kept, 1, feed.stream()), count + 2);
      EXPECT_EQ(count_of(*kept, 0, feed.stream()), count);
    }
    caller_graph_destroy(graph);
  });
}

TEST_F(UntouchedOnDevice, AStepCountThatOneRankSetsIsAMismatch) {
  for (const int64_t overlap : {0, 1}) {
    run_world(2, [overlap](const std::shared_ptr<Group> &group) {
      const Kind &kind = kCounted[3];
      const auto kept = make(group, kind, true, overlap);
      Feed feed(kind, group->rank());
      feed.fill(0);
      for (int64_t step = 0; step < 2; ++step) {
        give_feed(*kept, feed, 0b00010);
        expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
      }
      if (group->rank() == 1) expect_ok(kept->set_i64(ZERO_KEY_STEP_COUNT, 2), "set_i64");  // what it is
      give_feed(*kept, feed, 0b00010);
      expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_MISMATCH, "update count 2 of \"p0\"");
    });
  }
}

}  // namespace
}  // namespace zero::test::device_untouched_test
