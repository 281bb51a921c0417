/// @file Delayed updates: reductions under way behind a step, lost ranks, memory, and settings that do not go with them.
#include "group/collectives.h"
#include "tests/engine/held_reductions.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/refused_keys.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test::delayed_limits_test {
namespace {

constexpr std::pair<int32_t, int64_t> kDelay{ZERO_KEY_GRAD_DELAY, 1};

Model delayed_model(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 40, 0, 2500};
  model.recipe.keys = {kDelay};
  return model;
}

/// `releases`: not after a loss, when the optimizer can only be released itself.
std::vector<std::vector<float>> whole_params(Optimizer &optimizer, const Model &model, bool releases = true) {
  std::vector<std::vector<float>> all;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<float> &values = all.emplace_back(static_cast<size_t>(count));
    void *data = nullptr;
    expect_ok(run_task(optimizer, optimizer.param_acquire(id, values.data(), count, &data)), "param_acquire");
    if (releases) expect_ok(optimizer.param_release(id), "param_release");
  }
  return all;
}

/// Two ranks, whose second step returns while its reductions are held. body(rank, group, optimizer, parameters after that step) follows.
using Body = std::function<void(const std::shared_ptr<Group> &, std::shared_ptr<Optimizer> &, const std::vector<std::vector<float>> &)>;
void run_held(const Model &model, const Manner &manner, HeldReductions &held, const Body &body) {
  const std::string name = meeting_name();
  run_thread_ranks(2, [&](int64_t rank) {
    OperationQueue queue;
    std::shared_ptr<Transport> local;
    ASSERT_TRUE(queue.run(connect_local(name, rank, 2, {60'000, 65'536}, &local)).ok());
    const auto group = std::make_shared<Group>(std::make_shared<HoldingTransport>(local, held), std::make_shared<HostReducer>(1), 60'000);
    std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    (void)train_step(*optimizer, model, manner, 0);
    expect_ok(queue.run(barrier(*group)), "barrier");
    // Those of the first step have ended once another collective has run.
    expect_same_on_all_ranks(*optimizer);
    held.holds = true;
    expect_ok(queue.run(barrier(*group)), "barrier");
    EXPECT_EQ(train_step(*optimizer, model, manner, 1).step, 1);
    EXPECT_FALSE(held.timed_out);
    const Deadline deadline = Deadline::after_ms(4000);
    while (held.waiting == 0 && !deadline.passed()) std::this_thread::yield();
    EXPECT_GT(held.waiting, 0);
    body(group, optimizer, whole_params(*optimizer, model));
  });
  held.holds = false;
}

TEST(DelayedReductions, AreUnderWayWhenTheStepReturns) {
  for (const int64_t stage : {0, 1}) {
    HeldReductions held;
    const Model model = delayed_model(2);
    Model plain = model;
    plain.recipe.keys.clear();
    run_held(model, overlapped(stage), held, [&](const std::shared_ptr<Group> &group, std::shared_ptr<Optimizer> &optimizer, const auto &) {
      // Gradients of the next step are given meanwhile; only its call waits.
      give_gradients(*optimizer, model, overlapped(stage), 2);
      EXPECT_GT(held.waiting, 0);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      held.holds = false;
      expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
      EXPECT_TRUE(optimizer->step_times().overlap_active);
      const auto late = whole_params(*optimizer, model);
      const auto other = begun_optimizer(group, plain, {.stage = 0});
      train_steps(*other, plain, {.stage = 0}, 0, 2);
      EXPECT_EQ(late, whole_params(*other, plain));
    });
    EXPECT_FALSE(held.timed_out);
  }
}

TEST(DelayedReductions, EndBeforeOtherCallsAndRelease) {
  HeldReductions held;
  const Model model = delayed_model(2);
  run_held(model, overlapped(1), held, [&](const std::shared_ptr<Group> &group, std::shared_ptr<Optimizer> &optimizer, const auto &kept) {
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      held.holds = false;
    });
    expect_same_on_all_ranks(*optimizer);
    EXPECT_FALSE(held.holds);
    EXPECT_EQ(kept, whole_params(*optimizer, model));
    later.join();
    // A release waits too, so that no rank fails in what another has left.
    (void)train_step(*optimizer, model, overlapped(1), 2);
    optimizer.reset();
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
  });
}

/// The next call of each rank returns the loss, and parameters are those of the last step.
void expect_lost(Optimizer &optimizer, const Model &model, const std::vector<std::vector<float>> &kept) {
  const auto began = std::chrono::steady_clock::now();
  const Status status = run_task(optimizer, optimizer.step(nullptr));
  EXPECT_TRUE(poisons_group(status.code())) << status.text();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  EXPECT_EQ(kept, whole_params(optimizer, model, false));
}

TEST(DelayedReductions, ALossBehindTheStepIsTheErrorOfTheNextCallOnAllRanks) {
  for (const int64_t stage : {0, 1}) {
    HeldReductions held;
    const Model model = delayed_model(2);
    run_held(model, overlapped(stage), held,
             [&](const std::shared_ptr<Group> &group, std::shared_ptr<Optimizer> &optimizer, const auto &kept) {
               expect_ok(group->queue()->run(barrier(*group)), "barrier");
               if (group->rank() == 1) group->fail(Status::error(ZERO_E_ABORTED, "rank 1 gives up"));
               held.holds = false;
               expect_lost(*optimizer, model, kept);
             });
  }
}

TEST(DelayedReductions, ARankThatStaysAwayIsLostAtTheDeadline) {
  HeldReductions held;
  const Model model = delayed_model(2);
  std::atomic<bool> told{false};
  run_held(model, overlapped(1), held, [&](const std::shared_ptr<Group> &group, std::shared_ptr<Optimizer> &optimizer, const auto &kept) {
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
    held.holds = false;
    group->set_deadline_ms(300);
    while (group->rank() == 1 && !told) std::this_thread::yield();
    expect_lost(*optimizer, model, kept);
    told = true;
  });
}

TEST(DelayedMemory, IsASecondGradientOnEveryRankAndCounted) {
  Model plain = delayed_model(2);
  plain.algorithm = "sgd";
  plain.recipe.keys.clear();
  plain.counts = {1 << 20};
  Model late = plain;
  late.recipe.keys = {kDelay};
  constexpr int64_t kBytes = 4 << 20;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {0, 1}) {
      const auto optimizer = begun_optimizer(group, late, overlapped(stage));
      MemoryUse use{};
      expect_ok(optimizer->memory(ZERO_MEMORY_GRAD, &use), "memory");
      EXPECT_EQ(use.formula_nbytes, 2 * kBytes);
      EXPECT_GE(use.constant_nbytes, 0);
      EXPECT_LT(use.constant_nbytes, 65'536);
      train_steps(*optimizer, late, overlapped(stage), 0, 3);
      MemoryUse later{};
      expect_ok(optimizer->memory(ZERO_MEMORY_GRAD, &later), "memory");
      EXPECT_EQ(use.now_nbytes, later.now_nbytes);
      expect_ok(optimizer->memory(ZERO_MEMORY_ACCUMULATED, &later), "memory");
      EXPECT_EQ(later.now_nbytes, 0);
      const std::string text = optimizer->describe();
      EXPECT_NE(text.find("delay: a step applies the gradients given before the step before it"), std::string::npos) << text;
      EXPECT_NE(text.find("(two of them: ZERO_KEY_GRAD_DELAY)"), std::string::npos) << text;
    }
    // Two ranks need 16 MiB, or 24 with the delay.
    for (Model *model : {&plain, &late}) {
      Config config = make_config(*model, overlapped(1));
      EXPECT_TRUE(config.set_i64(ZERO_KEY_MEMORY_LIMIT, 20 << 20).ok());
      std::shared_ptr<Optimizer> optimizer;
      expect_ok(Optimizer::create(group, config, &optimizer), "create");
      int64_t id = 0;
      expect_ok(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, model->counts.data(), 1, &id), "add_param");
      const Status sealed = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(sealed.code(), model == &late ? ZERO_E_OUT_OF_MEMORY : ZERO_OK) << sealed.text();
    }
  });
}

TEST(DelayedMemory, TrafficIsThatOfPlainSteps) {
  Model model = delayed_model(2);
  Model plain = model;
  plain.recipe.keys.clear();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto late = begun_optimizer(group, model, overlapped(1));
    const auto other = begun_optimizer(group, plain, overlapped(1));
    train_steps(*late, model, overlapped(1), 0, 4);
    train_steps(*other, plain, overlapped(1), 0, 4);
    expect_same_on_all_ranks(*late);
    const Traffic reduced = late->traffic(OperationKind::reduce_scatter);
    const Traffic expected = other->traffic(OperationKind::reduce_scatter);
    EXPECT_EQ(reduced.sent_nbytes, expected.sent_nbytes);
    EXPECT_EQ(reduced.call_count, expected.call_count);
  });
}

TEST(DelayedRefusals, NameBothKeysAndTheRemedy) {
  const Refused cases[] = {
      {{{ZERO_KEY_STAGE, 2}}, {}, ZERO_E_UNSUPPORTED, "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_STAGE 2, but a rank holds whole gradients"},
      {{{ZERO_KEY_STAGE, 3}}, {}, ZERO_E_UNSUPPORTED, "ZERO_KEY_STAGE 3, but a rank holds whole gradients"},
      {{{ZERO_KEY_STAGE, 3}, {ZERO_KEY_PARAM_RANKS, 1}}, {}, ZERO_E_UNSUPPORTED, "use stage 0 or 1"},
      {{{ZERO_KEY_ONE_COPY, 1}}, {}, ZERO_E_UNSUPPORTED, "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_ONE_COPY 1"},
      {{{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_SYNC_PERIOD, 4}},
       {},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_SYNC_PERIOD 4"},
      {{{ZERO_KEY_REPLICA_RANKS, 1}, {ZERO_KEY_GRAD_CODE, ZERO_CODE_I4}, {ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32}},
       {},
       ZERO_E_UNSUPPORTED,
       "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_F32"}};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    for (const Refused &refused : cases) expect_refused(group, {kDelay}, refused);
    const std::pair<const char *, int32_t> algorithms[] = {{"custom", ZERO_E_UNSUPPORTED}, {"none", ZERO_E_INVALID_ARGUMENT}};
    for (const auto &[algorithm, code] : algorithms) {
      Config config;
      EXPECT_TRUE(config.set_i64(ZERO_KEY_GRAD_DELAY, 1).ok());
      EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, algorithm).ok());
      std::shared_ptr<Optimizer> optimizer;
      const Status status = Optimizer::create(group, config, &optimizer);
      EXPECT_EQ(status.code(), code) << status.text();
      EXPECT_TRUE(contains(status, "ZERO_KEY_GRAD_DELAY is 1") && contains(status, algorithm)) << status.text();
    }
  });
}

TEST(DelayedRefusals, RowsMicroStepsThatReduceAndRanksThatDiffer) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Model model = delayed_model(2);
    Config by_rows;
    EXPECT_TRUE(by_rows.set_i64(ZERO_KEY_ROWS, 1).ok());
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, make_config(model, {.stage = 1}), &optimizer), "create");
    const int64_t shape[] = {4, 8};
    int64_t id = 0;
    const Status rows = optimizer->add_param(&by_rows, "table", ZERO_DTYPE_F32, shape, 2, &id);
    EXPECT_EQ(rows.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(rows, "ZERO_KEY_ROWS is 1, but ZERO_KEY_GRAD_DELAY is 1 too")) << rows.text();
    const auto begun = begun_optimizer(group, model, {.stage = 1});
    const Status reduces = run_task(*begun, begun->micro_step(ZERO_MICRO_STEP_REDUCE));
    EXPECT_EQ(reduces.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(reduces, "ZERO_MICRO_STEP_REDUCE and ZERO_KEY_GRAD_DELAY 1")) << reduces.text();
    train_steps(*begun, model, {.stage = 1}, 0, 2);
    Model other = model;
    if (group->rank() == 1) other.recipe.keys.clear();
    std::shared_ptr<Optimizer> differs;
    expect_ok(Optimizer::create(group, make_config(other, {.stage = 1}), &differs), "create");
    expect_ok(differs->add_param(nullptr, "p", ZERO_DTYPE_F32, shape, 2, &id), "add_param");
    const Status sealed = differs->seal_queue()->run(differs->seal());
    EXPECT_EQ(sealed.code(), ZERO_E_MISMATCH);
    EXPECT_TRUE(contains(sealed, "ZERO_KEY_GRAD_DELAY")) << sealed.text();
  });
}

/// Each rank holds one tensor of the model, and is a world of one to its optimizer.
TEST(DelayedModelGroup, NormAndSkipsAreThoseOfTheWholeModel) {
  run_world(2, [&](const std::shared_ptr<Group> &world) {
    std::shared_ptr<Group> own;
    std::shared_ptr<Group> model_group;
    expect_ok(world->queue()->run(split(*world, world->rank(), 0, &own)), "split");
    expect_ok(world->queue()->run(split(*world, 0, world->rank(), &model_group)), "split");
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_GRAD_DELAY, 1).ok() && config.set_i64(ZERO_KEY_GRAD_NORM, 1).ok());
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(own, config, &optimizer), "create");
    expect_ok(optimizer->set_model_group(model_group), "set_model_group");
    const int64_t count = 1;
    int64_t id = 0;
    expect_ok(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, &count, 1, &id), "add_param");
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    const float given[] = {3, 6, std::numeric_limits<float>::infinity(), 9, 0};
    const double norms[] = {0, 5, 10, 0, 15};
    for (int64_t step = 0; step < 5; ++step) {
      // 3 and 4, 6 and 8, an overflow on one rank, 9 and 12.
      const float value = world->rank() == 0 ? given[step] : step == 2 ? 1.0F : given[step] * 4 / 3;
      expect_ok(optimizer->grad_ready(0, &value, 0, 1), "grad_ready");
      zero_step_result result{};
      expect_ok(run_task(*optimizer, optimizer->step(&result)), "step");
      EXPECT_EQ(result.skipped, step == 3 ? 1 : 0) << step;
      if (step == 3) continue;
      EXPECT_DOUBLE_EQ(result.grad_norm, norms[step]) << step;
    }
  });
}

}  // namespace
}  // namespace zero::test::delayed_limits_test
