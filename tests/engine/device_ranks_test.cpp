/// @file Steps of several ranks that keep everything on devices, which reach each other's memory: the bits of steps on the host. Also after
/// what the streams of callers were given.
#include "tests/engine/device_feed.h"
#include "tests/engine/rank_worlds.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace zero::test::device_ranks_test {
namespace {

using DeviceRanks = DeviceTest;

TEST_F(DeviceRanks, StepsHaveTheBitsOfTheHost) {
  for (const int64_t ranks : few_tests() ? std::vector<int64_t>{3} : std::vector<int64_t>{2, 4}) {
    run_world(ranks, [](const std::shared_ptr<Group> &group) {
      for (const Kind &kind : kKinds) {
        const auto host = make(group, kind, false);
        const auto kept = make(group, kind, true);
        Feed feed(kind, group->rank());
        zero_step_result expected{};
        for (int64_t step = 0; step < 8; ++step) {
          for (Optimizer *each : {host.get(), kept.get()}) set_rate(*each, step);
          expected = step_both(*host, *kept, feed, kind, step);
        }
        expect_alike(*host, *kept, expected, feed.stream(), kind);
        EXPECT_EQ(expected.skipped_total, 2) << kind.algorithm;
      }
    });
  }
}

/// Sums that cannot overflow are not looked at; those that might are applied where they do not.
TEST_F(DeviceRanks, LargeContributionsAreJudgedByTheirSums) {
  static constexpr float kMost = std::numeric_limits<float>::max();
  // By step, of the last element of tensor 4 on each of two ranks.
  static constexpr float kValues[][2] = {{1, 2},          {0.9F * kMost, -0.9F * kMost}, {0.9F * kMost, 0.9F * kMost},
                                         {3, 4},          {0.4F * kMost, 0.4F * kMost},  {kMost, 1},
                                         {-kMost, -kMost}};
  for (const int64_t stage : {1, 2}) {
    run_world(2, [stage](const std::shared_ptr<Group> &group) {
      Model model;
      model.ranks = 2;
      model.counts = {3000, 17, 0, 1024, 20'000};
      Manner host;
      host.stage = stage;
      Manner there = host;
      there.remote = &kDevice;
      there.kept_there = true;
      const std::shared_ptr<Optimizer> optimizers[] = {make_optimizer(group, model, host), make_optimizer(group, model, there)};
      for (const auto &each : optimizers) expect_ok(run_task(*each, each->begin(ZERO_SOURCE_LOCAL)), "begin");
      for (const auto &values : kValues) {
        std::vector<float> gradient(20'000, 0.5F);
        gradient.back() = values[group->rank()];
        zero_step_result results[] = {empty_result(), empty_result()};
        for (size_t i = 0; i < 2; ++i) {
          expect_ok(optimizers[i]->grad_ready(4, gradient.data(), 0, 20'000), "grad_ready");
          expect_ok(run_task(*optimizers[i], optimizers[i]->step(&results[i])), "step");
        }
        EXPECT_EQ(std::memcmp(&results[0], &results[1], sizeof results[0]), 0) << values[0] << " and " << values[1];
        EXPECT_EQ(read_slots(*optimizers[0], model), read_slots(*optimizers[1], model)) << values[0] << " and " << values[1];
      }
    });
  }
}

/// Whole steps and steps in parts, with results in between and scalars that callers set.
TEST_F(DeviceRanks, StepsOfBothKindsFollowOneAnother) {
  run_world(3, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : {kKinds[0], kKinds[1], kKinds[4]}) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind, group->rank());
      zero_step_result expected{};
      for (int64_t step = 0; step < 16; ++step) {
        expected = step_on_host(*host, kind, step);
        feed.fill(step);
        feed.give(*kept);
        zero_step_result result = empty_result();
        if (step % 3 == 2) {
          step_in_parts(*kept, nullptr, feed.stream());
        } else {
          expect_ok(run_task(*kept, kept->step(step % 2 == 0 ? &result : nullptr, feed.stream())), "step");
          EXPECT_TRUE(step % 2 == 1 || std::memcmp(&result, &expected, sizeof result) == 0) << kind.algorithm << " step " << step;
        }
        // One rank asks what the others do not know.
        if (group->rank() == 1) expect_ok(kept->result(&result, feed.stream()), "result");
        for (Optimizer *each : {host.get(), kept.get()}) {
          if (step == 4) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 40), "set_i64");
          if (step == 6) expect_ok(each->set_f64(0, ZERO_KEY_LOSS_SCALE, 512), "set_f64");
        }
      }
      expect_alike(*host, *kept, expected, feed.stream(), kind);
    }
  });
}

TEST_F(DeviceRanks, ScalarsThatDifferAreAMismatch) {
  for (const bool rate : {true, false}) {
    run_world(2, [rate](const std::shared_ptr<Group> &group) {
      const Kind &kind = kKinds[0];
      const auto kept = make(group, kind, true);
      Feed feed(kind, group->rank());
      feed.fill(0);
      feed.give(*kept);
      expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
      if (group->rank() == 1) expect_ok(rate ? kept->set_f64(0, ZERO_KEY_LR, 0.5) : kept->set_i64(ZERO_KEY_STEP_COUNT, 7), "set");
      feed.give(*kept);
      expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_MISMATCH, "differ between ranks");
    });
  }
}

/// What is told to one device alone is no difference where all hosts set it, and one where they do not.
TEST_F(DeviceRanks, ScalarsAreComparedWhoeverWasToldOfThem) {
  const Kind &kind = kKinds[1];
  for (const bool alike : {true, false}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto kept = make(group, kind, true);
      Feed feed(kind, group->rank());
      void *scale = nullptr;
      const auto step = [&] {
        feed.fill(0);
        feed.give(*kept);
        return run_task(*kept, kept->step(nullptr, feed.stream()));
      };
      if (group->rank() == 0) expect_ok(kept->loss_scale_address(feed.stream(), &scale), "loss_scale_address");
      expect_ok(step(), "step");
      feed.fill(0);
      feed.give(*kept);
      step_in_parts(*kept, nullptr, feed.stream());
      if (group->rank() == 0) expect_ok(kept->refresh(feed.stream()), "refresh");
      expect_ok(step(), "step");
      if (group->rank() == 1) expect_ok(kept->set_i64(ZERO_KEY_STEP_COUNT, 3), "set_i64");  // what it is
      expect_ok(step(), "step");
      if (alike || group->rank() == 0) expect_ok(kept->set_f64(0, ZERO_KEY_LOSS_SCALE, 512), "set_f64");
      if (group->rank() == 0) expect_ok(kept->refresh(feed.stream()), "refresh");
      const Status status = step();
      EXPECT_EQ(status.code(), alike ? ZERO_OK : ZERO_E_MISMATCH) << status.text();
    });
  }
}

/// Ranks go while what others do with their memory has been given to devices and not been done.
TEST_F(DeviceRanks, RanksMayGoBehindTheirStep) {
  const int64_t rounds = few_tests() ? 10 : 40;
  for (int64_t round = 0; round < rounds; ++round) {
    run_world(round % 3 + 2, [round](const std::shared_ptr<Group> &group) {
      const Kind &kind = kKinds[round % 2];
      auto kept = make(group, kind, true);
      Feed feed(kind, group->rank());
      for (int64_t step = 0; step < 2; ++step) {
        feed.fill(step);
        feed.give(*kept);
        expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
      }
      kept.reset();
    });
  }
}

TEST_F(DeviceRanks, AStepMeetsNoReduce) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind, group->rank());
    for (int64_t step = 0; step < 2; ++step) {
      feed.fill(step);
      feed.give(*kept);
      const bool splits = step == 1 && group->rank() == 1;
      const Status status = run_task(*kept, splits ? kept->reduce(nullptr, feed.stream()) : kept->step(nullptr, feed.stream()));
      if (step == 0) {
        expect_ok(status, "step");
      } else {
        expect_refused(status, ZERO_E_MISMATCH, "all ranks make the same call");
      }
    }
  });
}

/// Whoever stays hears of it in the step.
TEST_F(DeviceRanks, ARankThatGoesInsteadOfAStepIsAnError) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    auto kept = make(group, kind, true);
    Feed feed(kind, group->rank());
    for (int64_t step = 0; step < 2; ++step) {
      if (step == 1 && group->rank() == 1) return kept.reset();
      feed.fill(step);
      feed.give(*kept);
      const Status status = run_task(*kept, kept->step(nullptr, feed.stream()));
      EXPECT_EQ(status.code(), step == 0 ? ZERO_OK : ZERO_E_PEER_LEFT) << status.text();
    }
  });
}

TEST_F(DeviceRanks, ComeAfterReadsOfParametersThatOthersHold) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto kept = make(group, kKinds[0], true);
    Feed feed(kKinds[0]);
    void *data = nullptr;
    void *reader = caller_stream_create(0);
    std::vector<float> before(kCounts[0]);
    const PinnedFloats late(kCounts[0]);
    expect_ok(run_task(*kept, kept->read(0, ZERO_SLOT_PARAM, 0, before.data(), kCounts[0])), "read");
    for (void *stream : {feed.stream(), reader}) expect_ok(run_task(*kept, kept->param_acquire(0, nullptr, 0, &data, stream)), "acquire");
    caller_copy(reader, late.data(), data, 4 * kCounts[0], 20'000);
    expect_ok(kept->param_release(0), "param_release");
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
    caller_wait(reader);
    EXPECT_TRUE(std::ranges::equal(before, late.values()));
    expect_ok(kept->param_release(0), "param_release");
    caller_stream_destroy(reader);
  });
}

}  // namespace
}  // namespace zero::test::device_ranks_test
