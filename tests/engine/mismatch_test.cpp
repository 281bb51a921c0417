/// @file Ranks that make different calls of an optimizer learn so at once, with both calls named, whatever they wait for.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

namespace zero::test::mismatch_test {
namespace {

class Mismatch : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stages, Mismatch, testing::Values(0, 1, 2, 3));

/// A call that is told of only then has failed the test.
constexpr int64_t kLongMs = 20'000;

/// What a rank calls, and the name under which other ranks' errors know it.
struct NamedCall {
  const char *name;
  std::function<Task(Optimizer &)> call;
};

/// Rank 0 makes the first call and rank 1 the second.
void meet(const NamedCall &first, const NamedCall &second, int64_t stage, bool overlap) {
  Model model;
  model.ranks = 2;
  model.counts = {400};
  Manner manner;
  manner.stage = stage;
  manner.overlap = overlap;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    group->set_deadline_ms(kLongMs);
    const auto optimizer = begun_optimizer(group, model, manner);
    const Status status = run_task(*optimizer, (group->rank() == 0 ? first : second).call(*optimizer));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << first.name << " meets " << second.name << " in stage " << stage;
    for (const NamedCall &call : {first, second}) EXPECT_NE(std::strstr(status.text(), call.name), nullptr) << status.text();
  });
}

/// Also where one of them waits for gradients, which are summed in a group of their own.
TEST_P(Mismatch, NamesTheCallsOfBothRanksAtOnce) {
  static float values[4];
  static void *address;
  static zero_verify_result verified;
  const NamedCall calls[] = {
      {"zero_optimizer_step", [](Optimizer &optimizer) { return optimizer.step(nullptr); }},
      {"zero_optimizer_reduce", [](Optimizer &optimizer) { return optimizer.reduce(nullptr); }},
      {"zero_optimizer_begin", [](Optimizer &optimizer) { return optimizer.begin(ZERO_SOURCE_SHARDS); }},
      {"zero_optimizer_verify", [](Optimizer &optimizer) { return optimizer.verify(&verified); }},
      {"zero_optimizer_read", [](Optimizer &optimizer) { return optimizer.read(0, ZERO_SLOT_PARAM, 0, values, 1); }},
      {"zero_optimizer_write", [](Optimizer &optimizer) { return optimizer.write(0, ZERO_SLOT_PARAM, 0, values, 1); }},
      // A collective in stage 3 alone.
      {"zero_optimizer_param_acquire", [](Optimizer &optimizer) { return optimizer.param_acquire(0, nullptr, 0, &address); }},
  };
  const std::span<const NamedCall> collectives(calls, std::size(calls) - (GetParam() == 3 ? 0 : 1));
  for (const NamedCall &first : collectives) {
    for (const NamedCall &second : collectives) {
      if (&first == &second || HasFailure()) continue;
      for (const bool overlap : {false, true}) meet(first, second, GetParam(), overlap);
    }
  }
}

/// The outcome of a step of micro-steps of these kinds.
Status step_of(Optimizer &optimizer, const std::vector<int32_t> &kinds, const Model &model) {
  const std::vector<float> grad(300, 1);
  for (const int32_t kind : kinds) {
    if (Status status = run_task(optimizer, optimizer.micro_step(kind)); !status.ok()) return status;
    for (const int64_t id : {0, 1}) {
      Status status = optimizer.grad_ready(id, grad.data(), 0, model.counts[static_cast<size_t>(id)]);
      if (!status.ok()) return status;
    }
  }
  return run_task(optimizer, optimizer.step(nullptr));
}

/// Rank 0 sums the shards of a micro-step, which the step ends or another micro-step; the others do not.
TEST_P(Mismatch, AMicroStepThatIsReducedOnOneRankOnlyIsToldAtOnce) {
  constexpr int32_t kLast = ZERO_MICRO_STEP_LAST;
  constexpr int32_t kLocal = ZERO_MICRO_STEP_LOCAL;
  constexpr int32_t kReduce = ZERO_MICRO_STEP_REDUCE;
  const std::vector<int32_t> kinds[] = {{kReduce}, {kLast}, {kReduce, kLocal}, {kLocal, kLocal}, {kReduce, kReduce}};
  for (const auto &[first, others, ranks, overlap] : {std::tuple(0, 1, 2, false),
                                                      {0, 1, 3, true},
                                                      {2, 3, 3, false},
                                                      {2, 3, 2, true},
                                                      {2, 1, 2, false},
                                                      {4, 0, 2, false},
                                                      {4, 0, 3, true}}) {
    Model model;
    model.ranks = ranks;
    model.counts = {300, 31};
    model.divisor = ZERO_DIVISOR_ONE;
    Manner manner;
    manner.stage = GetParam();
    manner.overlap = overlap;
    run_world(ranks, [&, mine = first, theirs = others](const std::shared_ptr<Group> &group) {
      group->set_deadline_ms(kLongMs);
      const auto optimizer = begun_optimizer(group, model, manner);
      const Status status = step_of(*optimizer, kinds[group->rank() == 0 ? mine : theirs], model);
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      EXPECT_TRUE(contains(status, "the reduction of a micro-step of kind ZERO_MICRO_STEP_REDUCE")) << status.text();
    });
  }
}

/// All made the same sums of shards, but the step of rank 0 has no more to sum.
TEST_P(Mismatch, AStepThatEndsWithASumOnOneRankOnlyIsToldAtOnce) {
  for (const int32_t kind : {ZERO_MICRO_STEP_LAST, ZERO_MICRO_STEP_LOCAL}) {
    Model model{.ranks = 2, .counts = {300, 31}, .divisor = ZERO_DIVISOR_ONE};
    Manner manner;
    manner.stage = GetParam();
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      group->set_deadline_ms(kLongMs);
      const auto optimizer = begun_optimizer(group, model, manner);
      std::vector<int32_t> kinds{ZERO_MICRO_STEP_REDUCE};
      if (group->rank() == 1) kinds.push_back(kind);
      const Status status = step_of(*optimizer, kinds, model);
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::mismatch_test
