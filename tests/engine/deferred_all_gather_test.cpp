/// @file Gathers that go on behind a step, where ranks of different hosts cannot write into one another's memory.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

namespace zero::test::deferred_all_gather_test {
namespace {

constexpr int64_t kRanks = 4;
constexpr int64_t kPerHost = 2;

Model layers() {
  Model model;
  model.ranks = kRanks;
  model.counts = {3000, 40, 0, 2500, 5000, 100, 7000};
  return model;
}

std::shared_ptr<Optimizer> make(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  const auto optimizer = begun_optimizer(group, model, manner);
  return optimizer;
}

Status reduce_and_apply(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step) {
  give_gradients(optimizer, model, manner, step);
  ZERO_TRY(run_task(optimizer, optimizer.reduce(nullptr)));
  return run_task(optimizer, optimizer.apply());
}

/// The parameters as acquired one after another.
std::vector<float> acquired_params(Optimizer &optimizer, const Model &model) {
  std::vector<float> params;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    void *data = nullptr;
    const Status status = run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data));
    EXPECT_TRUE(status.ok()) << status.text();
    if (status.ok() && count > 0) params.insert(params.end(), static_cast<float *>(data), static_cast<float *>(data) + count);
    EXPECT_TRUE(optimizer.param_release(id).ok());
  }
  return params;
}

/// What this rank has updated itself is whole, though what others have updated never arrived.
void expect_new_shards(Optimizer &optimizer, int64_t views, const Outcome &expected, const Model &model) {
  EXPECT_GT(views, 0);
  for (int64_t i = 0; i < views; ++i) {
    View view{};
    ASSERT_TRUE(optimizer.view(i, ZERO_SLOT_PARAM, &view).ok());
    int64_t first = view.offset;
    for (int64_t id = 0; id < view.param; ++id) first += model.counts[static_cast<size_t>(id)];
    std::vector<float> read(static_cast<size_t>(view.count));
    expect_ok(run_task(optimizer, optimizer.read(view.param, ZERO_SLOT_PARAM, view.offset, read.data(), view.count)), "read");
    for (const void *values : {static_cast<const void *>(read.data()), static_cast<const void *>(view.data)}) {
      EXPECT_EQ(std::memcmp(values, &expected.params[static_cast<size_t>(first)], read.size() * sizeof(float)), 0) << view.param;
    }
  }
}

class Trailing : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stages, Trailing, testing::Values(1, 2));

TEST_P(Trailing, GatherReturnsBeforeTheLastRankComesAndAcquireWaitsForIt) {
  const Model model = layers();
  const Manner manner = overlapped(GetParam());
  const Outcome expected = reference_training(model);
  std::atomic<int64_t> returned{0};
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    for (int64_t step = 0; step < model.steps; ++step) {
      ASSERT_TRUE(reduce_and_apply(*optimizer, model, manner, step).ok());
      // The last rank gathers only when all others have returned from theirs.
      while (group->rank() == kRanks - 1 && returned < (step + 1) * (kRanks - 1)) std::this_thread::yield();
      ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
      if (group->rank() != kRanks - 1) ++returned;
    }
    EXPECT_EQ(acquired_params(*optimizer, model), expected.params);
  });
}

TEST_P(Trailing, CallsThatNeedParametersWaitForAllOfThem) {
  const Model model = layers();
  const Manner manner = overlapped(GetParam());
  const Outcome expected = reference_training(model);
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    for (int64_t step = 0; step < model.steps; ++step) train_step(*optimizer, model, manner, step);
    EXPECT_EQ(read_slot(*optimizer, model, ZERO_SLOT_PARAM), expected.params);
    zero_verify_result result{};
    const Status verified = run_task(*optimizer, optimizer->verify(&result));
    EXPECT_TRUE(verified.ok()) << verified.text();
    train_step(*optimizer, model, manner, model.steps);
    EXPECT_TRUE(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 1, 0, 0).ok());
    const Status begun = run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS));
    ASSERT_TRUE(begun.ok()) << begun.text();
    EXPECT_EQ(acquired_params(*optimizer, model)[2999], 1);
    train_step(*optimizer, model, manner, model.steps + 1);
    // Released while new parameters travel.
  });
}

TEST_P(Trailing, AnAcquiredParameterIsNewWhenTheStepReturns) {
  const Model model = layers();
  const Manner manner = overlapped(GetParam());
  const Outcome expected = reference_training(model);
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    void *data = nullptr;
    // Only some ranks hold it: they wait, the others do not.
    const bool holds = group->rank() % 2 == 0;
    ASSERT_TRUE(!holds || run_task(*optimizer, optimizer->param_acquire(6, nullptr, 0, &data)).ok());
    for (int64_t step = 0; step < model.steps; ++step) train_step(*optimizer, model, manner, step);
    const float *last = expected.params.data() + expected.params.size() - 7000;
    EXPECT_TRUE(!holds || std::memcmp(data, last, 7000 * sizeof(float)) == 0);
    EXPECT_EQ(acquired_params(*optimizer, model), expected.params);
    EXPECT_TRUE(!holds || optimizer->param_release(6).ok());
  });
}

TEST_P(Trailing, ALostRankIsTheErrorOfTheAcquireThatWaits) {
  const Model model = layers();
  const Manner manner = overlapped(GetParam());
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    ASSERT_TRUE(reduce_and_apply(*optimizer, model, manner, 0).ok());
    if (group->rank() == kRanks - 1) return;  // releases the optimizer instead
    const Status gathered = run_task(*optimizer, optimizer->gather());
    void *data = nullptr;
    const Status acquired = run_task(*optimizer, optimizer->param_acquire(6, nullptr, 0, &data));
    EXPECT_TRUE(poisons_group(acquired.code()) || acquired.code() == ZERO_E_CORRUPT) << acquired.text();
    EXPECT_NE(std::string(acquired.text()).find("rank 3"), std::string::npos) << gathered.text() << acquired.text();
    EXPECT_FALSE(run_task(*optimizer, optimizer->step(nullptr)).ok());
  });
}

TEST_P(Trailing, ALostRankIsTheErrorOfAnInitialiserAndOfAllThatComesAfter) {
  Model model = layers();
  model.steps = 1;
  const Manner manner = overlapped(GetParam());
  const Outcome expected = reference_training(model);
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    ASSERT_TRUE(reduce_and_apply(*optimizer, model, manner, 0).ok());
    if (group->rank() == kRanks - 1) return;  // releases the optimizer instead
    int64_t views = 0;
    ASSERT_TRUE(optimizer->view_count(&views).ok());
    (void)run_task(*optimizer, optimizer->gather());
    EXPECT_FALSE(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 1, 0, 0).ok());
    void *data = nullptr;
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const Status acquired = run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data));
      const bool travels = model.counts[static_cast<size_t>(id)] > 0;
      EXPECT_EQ(acquired.code(), travels ? ZERO_E_CORRUPT : ZERO_OK) << id << ": " << acquired.text();
      EXPECT_EQ(std::string(acquired.text()).find("the step was half applied") != std::string::npos, travels) << acquired.text();
    }
    expect_new_shards(*optimizer, views, expected, model);
  });
}

TEST_P(Trailing, InitialisersAreRefusedWhileAnAcquireWaits) {
  const Model model = layers();
  const Manner manner = overlapped(GetParam());
  std::atomic<int64_t> refused{0};
  run_hosts(kRanks, kPerHost, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make(group, model, manner);
    ASSERT_TRUE(reduce_and_apply(*optimizer, model, manner, 0).ok());
    const bool last = group->rank() == kRanks - 1;
    while (last && refused < kRanks - 1) std::this_thread::yield();
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    void *data = nullptr;
    const auto acquire = optimizer->queue()->submit(optimizer->param_acquire(6, nullptr, 0, &data));
    optimizer->queue()->progress();
    if (!last) {
      EXPECT_FALSE(acquire->done());
      EXPECT_EQ(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 1, 0, 0).code(), ZERO_E_STATE);
      ++refused;
    }
    EXPECT_TRUE(optimizer->queue()->wait(acquire).ok());
    EXPECT_NE(data, nullptr);
    EXPECT_TRUE(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 1, 0, 0).ok());
    EXPECT_TRUE(optimizer->param_release(6).ok());
    EXPECT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
  });
}

}  // namespace
}  // namespace zero::test::deferred_all_gather_test
