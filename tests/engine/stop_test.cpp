/// @file A stop that all ranks agree on: asked for by any rank, reported to all by the same step, at the price of one small message in
/// that step alone.
#include "group/collectives.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test::stop_test {
namespace {

constexpr int64_t kSteps = 8;

struct Way {
  int64_t ranks;
  int64_t per_host;  ///< 0: all ranks share one host
  bool norm;
  bool overlap;
  bool splits;  ///< every second step
};

constexpr Way kWays[] = {{1, 0, false, false, false}, {1, 0, true, false, true},  {2, 0, false, false, false}, {2, 0, true, false, false},
                         {3, 0, false, true, true},   {3, 0, false, false, true}, {3, 1, false, false, false}, {3, 2, true, true, true}};

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024};
  return model;
}

Manner manner_of(int64_t stage, const Way &way) {
  Manner manner;
  manner.stage = stage;
  manner.norm = way.norm;
  manner.overlap = way.overlap;
  manner.splits = way.splits;
  return manner;
}

/// What a rank asks for before a step; 0: nothing. Several ranks at once in some steps.
int64_t reason_at(int64_t step, int64_t rank, int64_t ranks) {
  if (step == 2 && rank == ranks - 1) return 7;
  if (step == 3) return 100 - rank;
  if (step == 5 && rank == 0) return INT64_MAX;
  if (step == 6) return rank == ranks - 1 ? 9 : rank == 0 ? 8 : 0;
  return 0;
}

int64_t expected_at(int64_t step, int64_t ranks) {
  int64_t largest = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) largest = std::max(largest, reason_at(step, rank, ranks));
  return largest;
}

void ask_if(bool asks, Optimizer &optimizer, int64_t reason) {
  const int32_t status = asks ? optimizer.request_stop(reason) : ZERO_OK;
  EXPECT_EQ(status, ZERO_OK);
}

struct Ran {
  std::vector<std::byte> slots;
  std::vector<int64_t> reasons;
  std::vector<int64_t> messages;  ///< all-reduces of each step
};

Ran run_steps(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, bool asks) {
  const auto optimizer = begun_optimizer(group, model, manner);
  Ran ran;
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t reason = reason_at(step, group->rank(), group->size());
    if (asks && reason > 0) {
      EXPECT_EQ(optimizer->request_stop(reason), ZERO_OK);
      EXPECT_EQ(optimizer->request_stop(1), ZERO_OK);  // a smaller one changes nothing
    }
    const int64_t before = optimizer->traffic(OperationKind::all_reduce).call_count;
    ran.reasons.push_back(train_step(*optimizer, model, manner, step).stop_reason);
    ran.messages.push_back(optimizer->traffic(OperationKind::all_reduce).call_count - before);
  }
  ran.slots = read_slots(*optimizer, model);
  return ran;
}

class StopStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, StopStages, testing::Range<int64_t>(0, 4));

TEST_P(StopStages, AllRanksSeeTheLargestReasonInTheSameStepAndNothingElseChanges) {
  for (const Way &way : kWays) {
    run_hosts(way.ranks, way.per_host, [&](const std::shared_ptr<Group> &group) {
      const Model model = model_of(way.ranks);
      const Manner manner = manner_of(GetParam(), way);
      const Ran plain = run_steps(group, model, manner, false);
      const Ran asked = run_steps(group, model, manner, true);
      EXPECT_EQ(plain.slots, asked.slots);
      for (int64_t step = 0; step < kSteps; ++step) {
        const auto at = static_cast<size_t>(step);
        const int64_t expected = expected_at(step, way.ranks);
        EXPECT_EQ(plain.reasons[at], 0);
        EXPECT_EQ(asked.reasons[at], expected) << "ranks " << way.ranks << " step " << step;
        EXPECT_EQ(asked.messages[at] - plain.messages[at], expected > 0 && way.ranks > 1 ? 1 : 0) << "step " << step;
      }
    });
  }
}

/// Asked for between reduce and gather it is the next step's.
TEST_P(StopStages, ReduceReportsIt) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(2);
    const Manner manner = manner_of(GetParam(), kWays[3]);
    const auto optimizer = begun_optimizer(group, model, manner);
    ask_if(group->rank() == 1, *optimizer, 15);
    int64_t seen[3] = {};
    for (int64_t step = 0; step < 3; ++step) {
      give_gradients(*optimizer, model, manner, step);
      zero_step_result result{};
      expect_ok(run_task(*optimizer, optimizer->reduce(&result)), "reduce");
      ask_if(step == 0 && group->rank() == 0, *optimizer, 4);
      expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
      expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
      seen[step] = result.stop_reason;
      zero_step_result newest{};
      expect_ok(optimizer->result(&newest), "result");
      EXPECT_EQ(newest.stop_reason, result.stop_reason);
    }
    EXPECT_EQ(seen[0], 15);
    EXPECT_EQ(seen[1], 4);
    EXPECT_EQ(seen[2], 0);
  });
}

TEST_P(StopStages, ASkippedStepReportsIt) {
  for (const int64_t ranks : {1, 2}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Model model = model_of(ranks);
      model.recipe.overflow_step = 1;
      const Manner manner = manner_of(GetParam(), kWays[2]);
      const auto optimizer = begun_optimizer(group, model, manner);
      for (int64_t step = 0; step < 3; ++step) {
        ask_if(step == 1 && group->rank() == 0, *optimizer, 15);
        const zero_step_result result = train_step(*optimizer, model, manner, step);
        EXPECT_EQ(result.skipped, step == 1 ? 1 : 0);
        EXPECT_EQ(result.stop_reason, step == 1 ? 15 : 0);
      }
    });
  }
}

/// Before seal, too. A step that fails leaves the request to the next one.
TEST_P(StopStages, AStepWithoutWeightsLeavesItToTheNext) {
  for (const int64_t ranks : {1, 2}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      Model model = model_of(ranks);
      model.divisor = ZERO_DIVISOR_WEIGHTS;
      const Manner manner = manner_of(GetParam(), kWays[2]);
      const auto optimizer = begun_optimizer(group, model, manner);
      ask_if(group->rank() == 0, *optimizer, 3);
      zero_step_result result{};
      result.stop_reason = -1;
      expect_ok(optimizer->set_weight(0), "set_weight");
      EXPECT_EQ(run_task(*optimizer, optimizer->step(&result)).code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(result.stop_reason, -1);
      EXPECT_EQ(train_step(*optimizer, model, manner, 1).stop_reason, 3);
      EXPECT_EQ(train_step(*optimizer, model, manner, 2).stop_reason, 0);
    });
  }
}

/// The ranks of a model that is cut in two: each half has a group of two replicas, and one rank of each is in every model group.
TEST_P(StopStages, TheOtherPartsOfTheModelSeeItToo) {
  run_world(4, [&](const std::shared_ptr<Group> &world) {
    const Model model = model_of(2);
    const Manner manner = manner_of(GetParam(), kWays[2]);
    std::shared_ptr<Group> replicas;
    std::shared_ptr<Group> parts;
    expect_ok(world->queue()->run(split(*world, world->rank() % 2, world->rank(), &replicas)), "split");
    expect_ok(world->queue()->run(split(*world, world->rank() / 2, world->rank(), &parts)), "split");
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(replicas, make_config(model, manner), &optimizer), "create");
    expect_ok(optimizer->set_model_group(parts), "set_model_group");
    int64_t id = 0;
    const int64_t shape = 300;
    expect_ok(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &shape, 1, &id), "add_param");
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "begin");
    for (int64_t asking = 0; asking < 4; ++asking) {
      ask_if(world->rank() == asking, *optimizer, 20 + asking);
      ask_if(world->rank() == 3 - asking, *optimizer, 10);
      for (const int64_t expected : {20 + asking, int64_t{0}}) {
        zero_step_result result{};
        expect_ok(run_task(*optimizer, optimizer->step(&result)), "step");
        EXPECT_EQ(result.stop_reason, expected);
      }
    }
    expect_ok(world->queue()->run(barrier(*world)), "barrier");
  });
}

/// Rising reasons of threads that ask while steps are under way: reports rise too, are alike on all ranks, and the last one is not lost.
TEST(Stop, ThreadsMayAskWhileStepsAreUnderWay) {
  constexpr int64_t kRanks = 3;
  constexpr int64_t kThreads = 2;
  const int64_t asked = few_tests() ? 200 : 5000;
  std::vector<std::vector<int64_t>> reports(kRanks);
  run_world(kRanks, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(kRanks);
    const Manner manner = manner_of(group->size() % 4, kWays[2]);
    const auto optimizer = begun_optimizer(group, model, manner);
    std::atomic<int64_t> running{kThreads};
    std::vector<std::thread> threads;
    for (int64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int64_t i = 0; i < asked; ++i) EXPECT_EQ(optimizer->request_stop((i * kThreads + thread) * kRanks + group->rank() + 1), ZERO_OK);
        running.fetch_sub(1);
      });
    }
    std::vector<int64_t> &mine = reports[static_cast<size_t>(group->rank())];
    const auto step_once = [&](int64_t step) { mine.push_back(train_step(*optimizer, model, manner, step).stop_reason); };
    for (int64_t step = 0; step < 20; ++step) step_once(step);
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(running.load(), 0);
    for (int64_t step = 20; step < 23; ++step) step_once(step);
  });
  for (const std::vector<int64_t> &each : reports) EXPECT_EQ(each, reports[0]);
  EXPECT_EQ(*std::max_element(reports[0].begin(), reports[0].end()), asked * kThreads * kRanks);
  EXPECT_EQ(reports[0].back(), 0);
}

}  // namespace
}  // namespace zero::test::stop_test
