/// @file What a trace shows: every call and every bucket once, on tracks where nothing overlaps, the newest events, in JSON that parses.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace zero::test::trace_test {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSteps = 3;

Model layers(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 40, 0, 2500, 5000, 100, 7000};
  return model;
}

Manner traced(int64_t stage, bool overlap, int64_t events) {
  Manner manner;
  manner.stage = stage;
  manner.overlap = overlap;
  manner.bucket_nbytes = 16'384;
  manner.trace_events = events;
  return manner;
}

Json trace_of(const Optimizer &optimizer) {
  std::string text;
  const Status status = optimizer.trace(&text);
  EXPECT_TRUE(status.ok()) << status.text();
  Json trace = Json::parse(text, nullptr, false);
  EXPECT_FALSE(trace.is_discarded()) << text;
  return trace;
}

/// Events with a duration, in the order they ended.
std::vector<Json> events_of(const Json &trace) {
  std::vector<Json> events;
  for (const Json &event : trace["traceEvents"]) {
    if (event["ph"] == "X") events.push_back(event);
  }
  return events;
}

std::map<std::string, int64_t> counts_by_name(const std::vector<Json> &events) {
  std::map<std::string, int64_t> counts;
  for (const Json &event : events) ++counts[event["name"].get<std::string>()];
  return counts;
}

int64_t count_with(const std::map<std::string, int64_t> &counts, const std::string &begin) {
  int64_t count = 0;
  for (const auto &[name, number] : counts) count += name.rfind(begin, 0) == 0 ? number : 0;
  return count;
}

/// Two events of a track lie apart or one within the other.
void expect_tracks_nest(const std::vector<Json> &events) {
  constexpr double kRounding = 0.001;
  for (size_t i = 0; i < events.size(); ++i) {
    const double begin = events[i]["ts"];
    const double end = begin + events[i]["dur"].get<double>();
    for (size_t j = i + 1; j < events.size(); ++j) {
      if (events[j]["tid"] != events[i]["tid"]) continue;
      const double later_begin = events[j]["ts"];  // it ended later
      EXPECT_TRUE(later_begin >= end - kRounding || later_begin <= begin + kRounding) << events[i] << " " << events[j];
    }
  }
}

class Traced : public testing::TestWithParam<std::tuple<int64_t, bool>> {};
INSTANTIATE_TEST_SUITE_P(StageAndOverlap, Traced, testing::Combine(testing::Values(0, 1, 2, 3), testing::Bool()));

TEST_P(Traced, ShowsEveryCallAndEveryBucketOfEveryStep) {
  const auto [stage, overlap] = GetParam();
  const Model model = layers(2);
  const Manner manner = traced(stage, overlap, 1000);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < kSteps; ++step) train_step(*optimizer, model, manner, step);
    const Json trace = trace_of(*optimizer);
    const std::vector<Json> events = events_of(trace);
    const auto counts = counts_by_name(events);
    for (const char *once_per_step : {"step", "reduce", "vote", "apply", "gather"}) EXPECT_EQ(counts.at(once_per_step), kSteps);
    for (const char *tensor : {"p0", "p1", "p3", "p6"}) EXPECT_EQ(counts.at(std::string("grad_ready ") + tensor), kSteps);
    EXPECT_EQ(counts.at("reduce bucket 0"), kSteps);
    EXPECT_EQ(counts.at("reduce bucket 3"), kSteps);
    EXPECT_EQ(count_with(counts, "reduce bucket ") % kSteps, 0);
    EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank " + std::to_string(group->rank()));
    expect_tracks_nest(events);
  });
}

void acquire_and_release_all(Optimizer &optimizer, const Model &model) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    void *data = nullptr;
    ASSERT_TRUE(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)).ok());
    ASSERT_TRUE(optimizer.param_release(id).ok());
  }
}

TEST(Trace, ShowsGathersThatRunAhead) {
  const Model model = layers(2);
  Manner manner = traced(3, true, 1000);
  manner.source = ZERO_SOURCE_SHARDS;  // acquires nothing
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < kSteps; ++step) {
      acquire_and_release_all(*optimizer, model);
      train_step(*optimizer, model, manner, step);
    }
    const std::vector<Json> events = events_of(trace_of(*optimizer));
    const auto counts = counts_by_name(events);
    EXPECT_EQ(counts.at("param_acquire p6"), kSteps);
    // The first step shows the order.
    EXPECT_EQ(counts.at("gather p6"), kSteps - 1);
    expect_tracks_nest(events);
  });
}

TEST(Trace, ShowsGathersBehindAStepOnATrackOfTheirOwn) {
  const Model model = layers(4);
  const Manner manner = traced(1, true, 1000);
  run_hosts(model.ranks, 2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_step(*optimizer, model, manner, 0);
    acquire_and_release_all(*optimizer, model);
    int64_t gathers = 0;
    for (const Json &event : events_of(trace_of(*optimizer))) {
      if (event["cat"] != "gather bucket") continue;
      EXPECT_EQ(event["tid"], static_cast<int>(Trace::Track::gathers));
      ++gathers;
    }
    EXPECT_GT(gathers, 1);
  });
}

TEST(Trace, KeepsTheNewestEvents) {
  const Model model = layers(1);
  const Manner manner = traced(0, false, 5);
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < kSteps; ++step) {
      train_step(*optimizer, model, manner, step);
      const std::vector<Json> events = events_of(trace_of(*optimizer));
      ASSERT_EQ(events.size(), 5U);
      const char *newest[] = {"vote", "reduce", "apply", "gather", "step"};
      for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["name"], newest[i]);
    }
  });
}

TEST(Trace, TakesNamesOfAnyCharacters) {
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const Manner manner = traced(0, false, 10);
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, make_config(layers(1), manner), &optimizer).ok());
    const int64_t count = 3;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "a \"quoted\"\n\xC3\xA9 name", ZERO_DTYPE_F32, &count, 1, &id).ok());
    std::string text;
    EXPECT_EQ(optimizer->trace(&text).code(), ZERO_E_STATE);
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).ok());
    const float grad[count] = {1, 2, 3};
    ASSERT_TRUE(optimizer->grad_ready(id, grad, 0, count).ok());
    EXPECT_EQ(events_of(trace_of(*optimizer))[0]["name"], "grad_ready a \"quoted\"\n\xC3\xA9 name");
  });
}

TEST(Trace, ShowsNoCallThatNamesNoTensor) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Model model = layers(1);
    const auto optimizer = begun_optimizer(group, model, traced(0, false, 100));
    const size_t before = events_of(trace_of(*optimizer)).size();
    void *data = nullptr;
    int64_t accumulate = 0;
    for (const int64_t id : {int64_t{-1}, model.tensors(), INT64_MAX}) {
      EXPECT_EQ(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)).code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(optimizer->grad_acquire(id, &data, &accumulate).code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(optimizer->grad_ready(id, &data, 0, 1).code(), ZERO_E_INVALID_ARGUMENT);
    }
    EXPECT_EQ(events_of(trace_of(*optimizer)).size(), before);
  });
}

TEST(Trace, IsAnErrorWhereNoneIsKept) {
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, layers(1), {});
    std::string text;
    const Status status = optimizer->trace(&text);
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_NE(std::string(status.text()).find("ZERO_KEY_TRACE_EVENTS"), std::string::npos);
  });
}

TEST(Trace, MayBeReadWhileStepsGoOn) {
  const Model model = layers(2);
  const Manner manner = traced(2, true, 50);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    std::atomic<bool> ended{false};
    std::thread reader([&] {
      while (!ended) EXPECT_LE(events_of(trace_of(*optimizer)).size(), 50U);
    });
    for (int64_t step = 0; step < 20; ++step) train_step(*optimizer, model, manner, step);
    ended = true;
    reader.join();
    EXPECT_EQ(events_of(trace_of(*optimizer)).size(), 50U);
  });
}

}  // namespace
}  // namespace zero::test::trace_test
