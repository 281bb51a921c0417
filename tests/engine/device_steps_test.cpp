/// @file Steps of optimizers on a device that nobody waits for, and steps that become part of CUDA graphs: the bits of steps on the host.
#include "tests/engine/device_feed.h"
#include "tests/engine/rank_worlds.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace zero::test::device_steps_test {
namespace {

const int64_t kReplays = few_tests() ? 12 : 100;

using StepsOnDevice = DeviceTest;

/// In the last steps the device does nothing before the host has given it all. (CUDA takes about a thousand launches ahead.)
TEST_F(StepsOnDevice, NobodyWaitsForAStep) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : kKinds) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      int32_t goes_on = 0;
      zero_step_result expected{};
      for (int64_t step = 0; step < 8; ++step) {
        if (step == 5) caller_hold(feed.stream(), &goes_on);
        for (Optimizer *each : {host.get(), kept.get()}) set_rate(*each, step);
        expected = step_both(*host, *kept, feed, kind, step);
      }
      __atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
    }
  });
}

/// Reduce, apply and gather by themselves, with results in between, and scalars that the caller sets.
TEST_F(StepsOnDevice, PartsOfStepsAndScalarsGoTogether) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[1];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    zero_step_result expected{};
    for (int64_t step = 0; step < 8; ++step) {
      expected = step_on_host(*host, kind, step);
      feed.fill(step);
      feed.give(*kept);
      zero_step_result reduced = empty_result();
      step_in_parts(*kept, step % 2 == 0 ? &reduced : nullptr, feed.stream());
      EXPECT_TRUE(step % 2 == 1 || std::memcmp(&reduced, &expected, sizeof reduced) == 0) << "step " << step;
      for (Optimizer *each : {host.get(), kept.get()}) {
        if (step == 4) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 40), "set_i64");
        if (step == 5) expect_ok(each->set_f64(0, ZERO_KEY_LOSS_SCALE, 512), "set_f64");
        if (step == 6) expect_ok(each->set_i64(ZERO_KEY_GROWTH_COUNT, 1), "set_i64");
        int64_t count = 0;
        expect_ok(each->get_i64(ZERO_KEY_STEP_COUNT, &count), "get_i64");
        EXPECT_EQ(count, step == 4 ? 40 : expected.step) << "step " << step;
      }
    }
    EXPECT_EQ(expected.step, 42);
    expect_alike(*host, *kept, expected, feed.stream(), kind);
  });
}

TEST_F(StepsOnDevice, KernelsFindTheLossScaleOfTheNextStep) {
  for (const int64_t world : {1, 2, 3}) {
    run_world(std::min<int64_t>(world, 2), [world](const std::shared_ptr<Group> &group) {
      const auto kept = make(group, kKinds[1], true, world == 3 ? 1 : 0);
      Feed feed(kKinds[1]);
      void *address = nullptr;
      expect_ok(kept->loss_scale_address(feed.stream(), &address), "loss_scale_address");
      const auto expect_scale = [&](double expected) {
        double seen = 0;
        caller_copy(feed.stream(), &seen, address, sizeof seen, 0);
        caller_wait(feed.stream());
        EXPECT_EQ(seen, expected);
      };
      expect_scale(65'536);
      zero_step_result result = empty_result();
      for (int64_t step = 0; step < 8; ++step) {
        feed.fill(step);
        feed.give(*kept);
        expect_ok(run_task(*kept, kept->step(&result, feed.stream())), "step");
        expect_scale(result.loss_scale);
      }
      expect_ok(kept->set_f64(0, ZERO_KEY_LOSS_SCALE, 256), "set_f64");
      expect_ok(kept->refresh(feed.stream()), "refresh");
      expect_scale(256);
    });
  }
}

/// A graph of the copies of gradients and the step, run again and again while the rate changes; plain steps before and after.
TEST_F(StepsOnDevice, CapturedStepsHaveTheBitsOfPlainOnes) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : kKinds) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      zero_step_result expected = step_both(*host, *kept, feed, kind, 0);
      void *scale = nullptr;
      std::vector<double> seen(static_cast<size_t>(kReplays));
      std::vector<double> scales;
      expect_ok(kept->loss_scale_address(feed.stream(), &scale), "loss_scale_address");
      caller_capture_begin(feed.stream());
      feed.give(*kept);
      expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr) << kind.algorithm;
      for (int64_t step = 1; step <= kReplays; ++step) {
        for (Optimizer *each : {host.get(), kept.get()}) set_rate(*each, step);
        expect_ok(kept->refresh(feed.stream()), "refresh");
        feed.fill(step);
        caller_replay(graph, feed.stream());
        expected = step_on_host(*host, kind, step);
        caller_copy(feed.stream(), &seen[static_cast<size_t>(step - 1)], scale, sizeof(double), 0);
        scales.push_back(expected.loss_scale);
      }
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      EXPECT_EQ(seen, scales) << kind.algorithm;
      EXPECT_GT(expected.skipped_total, 0);
      expected = step_both(*host, *kept, feed, kind, kReplays + 1);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      caller_graph_destroy(graph);
    }
  });
}

/// Acquires a gradient and fills it in the order of the stream; no values: it stays as it is.
void make_in_place(Optimizer &optimizer, void *stream, int64_t id, const std::vector<std::byte> &values) {
  void *data = nullptr;
  int64_t accumulate = 0;
  expect_ok(optimizer.grad_acquire(id, &data, &accumulate, stream), "grad_acquire");
  if (!values.empty()) caller_copy(stream, data, values.data(), std::ssize(values), 0);
}

/// One launch for each gradient that is copied, one for all that are where they are to be.
TEST_F(StepsOnDevice, GradientsInPlaceAreLookedAtTogether) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    int64_t nodes[2] = {};
    for (const bool in_place : {false, true}) {
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      const auto step = [&] {
        if (!in_place) feed.give(*kept);
        for (int64_t id = 0; in_place && id < kTensors; ++id) {
          make_in_place(*kept, feed.stream(), id, {});
          expect_ok(kept->grad_ready(id, nullptr, 0, kCounts[id], feed.stream()), "grad_ready");
        }
        expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
      };
      step();
      caller_capture_begin(feed.stream());
      step();
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr);
      nodes[in_place ? 1 : 0] = caller_graph_nodes(graph);
      caller_graph_destroy(graph);
    }
    EXPECT_EQ(nodes[0] - nodes[1], 4 - 1);
  });
}

/// A gradient that comes in place in two parts, on rank 0 with an infinite element or not, and the others of its bucket, copied, or none.
zero_step_result step_in_place(Optimizer &kept, const Feed &feed, int64_t id, bool finite, bool others) {
  std::vector<float> values(static_cast<size_t>(kCounts[id]), 1.0F);
  if (!finite && kept.group()->rank() == 0) values[static_cast<size_t>(kCounts[id] / 2)] = std::numeric_limits<float>::infinity();
  const int64_t first = kCounts[id] / 3;
  const std::vector<std::byte> bytes = encode(values, DType::f32);
  make_in_place(kept, feed.stream(), id, bytes);
  expect_ok(kept.grad_ready(id, nullptr, first, kCounts[id] - first, feed.stream()), "grad_ready");
  if (others) feed.give(kept, id);
  expect_ok(kept.grad_ready(id, nullptr, 0, first, feed.stream()), "grad_ready");
  zero_step_result result = empty_result();
  expect_ok(run_task(kept, kept.step(&result, feed.stream())), "step");
  return result;
}

TEST_F(StepsOnDevice, NonfiniteGradientsInPlaceAreFound) {
  for (const int64_t world : {1, 2}) {
    run_world(world, [](const std::shared_ptr<Group> &group) {
      const auto kept = make(group, kKinds[0], true);
      Feed feed(kKinds[0], group->rank());
      feed.fill(0);
      for (const int64_t id : {0, 1, 3, 4}) {
        for (const bool others : {false, true}) {
          for (const bool finite : {false, true}) {
            EXPECT_EQ(step_in_place(*kept, feed, id, finite, others).skipped, finite ? 0 : 1) << "tensor " << id << ", others " << others;
          }
        }
      }
    });
  }
}

/// The limit of contributions that are summed late is none of sums that are reduced before.
TEST_F(StepsOnDevice, LargeGradientsInMicroStepsThatAreReducedAreNoReasonToSkip) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const auto kept = make(group, {.algorithm = "adamw", .dtype = DType::f16}, true);
    const Lent lent(0, 0);
    const std::vector<std::byte> values = encode(std::vector<float>(static_cast<size_t>(kCounts[0]), 20'000), DType::f16);
    for (int64_t part = 0; part < 2; ++part) {
      expect_ok(run_task(*kept, kept->micro_step(ZERO_MICRO_STEP_REDUCE)), "micro_step");
      make_in_place(*kept, lent.stream, 0, values);
      expect_ok(kept->grad_ready(0, nullptr, 0, kCounts[0], lent.stream), "grad_ready");
    }
    zero_step_result result = empty_result();
    expect_ok(run_task(*kept, kept->step(&result, lent.stream)), "step");
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(result.step, 1);
  });
}

/// What is set reaches graphs with refresh only, and then in the order of the stream; what was set before the capture is not part of it.
TEST_F(StepsOnDevice, GraphsKeepWhatTheyKnowUntilItIsRefreshed) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[1];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    (void)step_both(*host, *kept, feed, kind, 0);
    const auto set_all = [](Optimizer &optimizer, int64_t step) {
      set_rate(optimizer, step);
      expect_ok(optimizer.set_i64(ZERO_KEY_STEP_COUNT, 10 * step), "set_i64");
      expect_ok(optimizer.set_i64(ZERO_KEY_GROWTH_COUNT, 0), "set_i64");
      expect_ok(optimizer.set_f64(0, ZERO_KEY_LOSS_SCALE, 256), "set_f64");
    };
    set_all(*kept, 1);
    caller_capture_begin(feed.stream());
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    int64_t count = 0;
    expect_ok(kept->get_i64(ZERO_KEY_STEP_COUNT, &count), "get_i64");
    EXPECT_EQ(count, 10);
    caller_replay(graph, feed.stream());
    (void)step_on_host(*host, kind, 0);
    zero_step_result expected{};
    for (const int64_t step : {2, 3}) {
      set_all(*kept, step);
      expect_ok(kept->refresh(feed.stream()), "refresh");
      set_all(*host, step);
      for (int64_t i = 0; i < 2; ++i) {
        caller_replay(graph, feed.stream());
        expected = step_on_host(*host, kind, 0);
      }
      EXPECT_EQ(expected.step, 10 * step + 2);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
    }
    caller_graph_destroy(graph);
  });
}

/// Tensors that plain steps leave as they are get their updates from graphs nevertheless.
TEST_F(StepsOnDevice, GraphsKeepTheirTensorsBesidePlainStepsOfAnotherKind) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &few : kKinds) {
      if (!few.untouched) continue;
      Kind all = few;
      all.untouched = false;
      const auto host = make(group, few, false);
      const auto kept = make(group, few, true);
      Feed feed(all);
      Feed few_feed(few);
      zero_step_result expected = step_both(*host, *kept, feed, all, 0);
      caller_capture_begin(feed.stream());
      feed.give(*kept);
      expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr) << few.algorithm;
      for (int64_t step = 1; step < 10; ++step) {
        const bool plain = step % 3 == 0;
        if (plain) {
          expected = step_both(*host, *kept, few_feed, few, step);
        } else {
          feed.fill(step);
          caller_replay(graph, feed.stream());
          expected = step_on_host(*host, all, step);
        }
        zero_step_result result = empty_result();
        expect_ok(kept->result(&result, plain ? few_feed.stream() : feed.stream()), "result");
        EXPECT_EQ(result.step, expected.step);
      }
      expect_alike(*host, *kept, expected, feed.stream(), few);
      caller_graph_destroy(graph);
    }
  });
}

/// Each run of a graph decodes what the run before it left, into memory of the caller.
TEST_F(StepsOnDevice, GraphsAcquireCodedParametersIntoMemoryOfTheCaller) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[6];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    const Lent lent(0, 3000 * 2);
    void *data = nullptr;
    (void)step_both(*host, *kept, feed, kind, 0);
    caller_capture_begin(feed.stream());
    expect_refused(run_task(*kept, kept->param_acquire(0, nullptr, 0, &data, feed.stream())), ZERO_E_STATE, "without dst on the device");
    expect_ok(run_task(*kept, kept->param_acquire(0, lent.data, 3000, &data, feed.stream())), "param_acquire");
    expect_ok(kept->param_release(0), "param_release");
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    for (int64_t step = 1; step < 4; ++step) {
      feed.fill(step);
      caller_replay(graph, feed.stream());
      std::vector<std::byte> actual(3000 * 2);
      caller_copy(feed.stream(), actual.data(), lent.data, 3000 * 2, 0);
      caller_wait(feed.stream());
      expect_ok(run_task(*host, host->param_acquire(0, nullptr, 0, &data)), "param_acquire");
      EXPECT_EQ(std::memcmp(actual.data(), data, actual.size()), 0) << "step " << step;
      expect_ok(host->param_release(0), "param_release");
      (void)step_on_host(*host, kind, step);
    }
    caller_graph_destroy(graph);
  });
}

/// Neither the capture nor the optimizer is lost.
TEST_F(StepsOnDevice, WhatCannotBeCapturedIsAnError) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    zero_step_result result = empty_result();
    caller_capture_begin(feed.stream());
    expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_STATE, "none was made before");
    expect_refused(run_task(*kept, kept->step(&result, feed.stream())), ZERO_E_STATE, "has no result yet");
    expect_refused(run_task(*kept, kept->reduce(&result, feed.stream())), ZERO_E_STATE, "has no result yet");
    expect_refused(kept->result(&result, feed.stream()), ZERO_E_STATE, "zero_optimizer_result cannot become part");
    expect_refused(kept->refresh(feed.stream()), ZERO_E_STATE, "zero_optimizer_refresh cannot become part");
    const float lent = 1;
    std::vector<float> dst(static_cast<size_t>(kCounts[0]));
    void *data = nullptr;
    expect_refused(run_task(*kept, kept->param_acquire(0, dst.data(), kCounts[0], &data, feed.stream())), ZERO_E_STATE,
                   "a copy between host and device cannot become part");
    expect_refused(kept->grad_ready(0, &lent, 0, 1, feed.stream()), ZERO_E_STATE, "a copy between host and device cannot become part");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    caller_graph_destroy(graph);
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(&result, feed.stream())), "step");
    EXPECT_EQ(result.step, 1);
  });
}

/// As one must come before a capture.
void plain_step(Optimizer &kept, Feed &feed) {
  feed.fill(0);
  feed.give(kept);
  expect_ok(run_task(kept, kept.step(nullptr, feed.stream())), "step");
}

/// Whatever comes last in them: the work of the optimizer's stream is joined to the program's.
TEST_F(StepsOnDevice, GraphsThatEndWithAReleaseOrARefusedGradientAreWhole) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    plain_step(*kept, feed);
    const auto acquire_and_release = [&] {
      void *data = nullptr;
      expect_ok(run_task(*kept, kept->param_acquire(0, nullptr, 0, &data, feed.stream())), "param_acquire");
      expect_ok(kept->param_release(0), "param_release");
    };
    const auto give_twice = [&] {
      feed.give(*kept);
      const Status again = kept->grad_ready(0, feed.data(0), 0, kCounts[0], feed.stream());
      EXPECT_FALSE(again.ok());
    };
    for (const std::function<void()> &last : {std::function<void()>(acquire_and_release), std::function<void()>(give_twice)}) {
      caller_capture_begin(feed.stream());
      last();
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr);
      caller_graph_destroy(graph);
    }
  });
}

/// A graph would find the tables of another step on the device.
TEST_F(StepsOnDevice, ACapturedStepOfAnotherKindIsTheLast) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto kept = make(group, kKinds[4], true);
    Feed fills_most(kKinds[4]);
    Feed fills_all(kKinds[0]);
    fills_most.fill(0);
    fills_most.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, fills_most.stream())), "step");
    caller_capture_begin(fills_all.stream());
    fills_all.give(*kept);
    expect_refused(run_task(*kept, kept->step(nullptr, fills_all.stream())), ZERO_E_STATE, "are not those of the step before it");
    caller_graph_destroy(caller_capture_end(fills_all.stream()));
    expect_refused(run_task(*kept, kept->step(nullptr, fills_all.stream())), ZERO_E_STATE, "are not those of the step before it");
  });
}

/// The vote of several ranks is the host's.
TEST_F(StepsOnDevice, StepsOfSeveralRanksAreNotCaptured) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true, 1);
    Feed feed(kind);
    plain_step(*kept, feed);
    if (group->rank() == 0) {
      const Lent lent(0, 4 * kCounts[0]);
      caller_capture_begin(feed.stream());
      expect_refused(kept->grad_ready(0, lent.data, 0, kCounts[0], feed.stream()), ZERO_E_UNSUPPORTED, "so gradients cannot become");
      expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_UNSUPPORTED, "wait for one another on the host");
      void *graph = caller_capture_end(feed.stream());
      EXPECT_NE(graph, nullptr);
      caller_graph_destroy(graph);
    }
    expect_ok(kept->refresh(feed.stream()), "refresh");
    feed.give(*kept);
    zero_step_result steps[2] = {empty_result(), empty_result()};
    expect_ok(run_task(*kept, kept->step(&steps[0], feed.stream())), "step");
    expect_ok(kept->result(&steps[1], feed.stream()), "result");
    EXPECT_EQ(std::memcmp(&steps[0], &steps[1], sizeof steps[0]), 0);
    EXPECT_EQ(steps[0].step, 2);
  });
}

}  // namespace
}  // namespace zero::test::device_steps_test
