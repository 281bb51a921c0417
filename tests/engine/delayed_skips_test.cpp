/// @file Delayed updates: skips, loss scales, weights, and calls that find gradients waiting.
#include "tests/engine/delayed_model.h"
#include "tests/engine/plain_replicas.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zero::test::delayed_skips_test {
namespace {

Model skipping_model() {
  Model model;
  model.ranks = 2;
  model.counts = {257, 1, 700};
  model.recipe.keys = {{ZERO_KEY_LOSS_SCALE_DYNAMIC, 1}, {ZERO_KEY_LOSS_SCALE_WINDOW, 2}};
  model.recipe.loss_scale = 1024;
  return model;
}

/// By hand: the scale after each call, if the gradients of one step overflow.
std::vector<double> scales_by_hand(int64_t calls, int64_t overflow) {
  std::vector<double> scales;
  double scale = 1024;
  int64_t good = 0;
  for (int64_t call = 0; call < calls; ++call) {
    if (call > 0 && call - 1 == overflow) {
      scale /= 2;
      good = 0;
    } else if (call > 0 && ++good == 2) {
      scale *= 2;
      good = 0;
    }
    scales.push_back(scale);
  }
  return scales;
}

/// Slots after plain steps with these gradients, scaled as asked for; one step overflows.
std::vector<std::byte> plain_slots(const std::shared_ptr<Group> &group, const Model &model, const std::vector<int64_t> &steps,
                                   int64_t overflow) {
  const auto optimizer = begun_optimizer(group, model, {.stage = 1});
  double scale = model.recipe.loss_scale;
  for (const int64_t step : steps) scale = plain_step(*optimizer, model, step, scale, step == overflow).loss_scale;
  return read_slots(*optimizer, model);
}

TEST(DelayedSkips, AnOverflowAtEachStepLeavesAllStateAndUnscalesEachGradientByItsOwnScale) {
  const Model model = skipping_model();
  constexpr int64_t kCalls = 7;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    for (int64_t overflow = 0; overflow < kCalls; ++overflow) {
      for (int64_t at = 0; at < 4; ++at) {
        const auto optimizer = begun_optimizer(group, delayed(model), {.stage = at % 2, .overlap = at / 2 == 1});
        const std::vector<double> scales = scales_by_hand(kCalls, overflow);
        std::vector<std::byte> before = read_slots(*optimizer, model);
        double scale = model.recipe.loss_scale;
        for (int64_t call = 0; call < kCalls; ++call) {
          const bool overflows = call == overflow && group->rank() == 1;
          const zero_step_result result = plain_step(*optimizer, model, call, scale, overflows);
          std::vector<std::byte> after = read_slots(*optimizer, model);
          const bool skips = call > 0 && call - 1 == overflow;
          EXPECT_EQ(result.skipped, skips ? 1 : 0) << "overflow " << overflow << " call " << call;
          EXPECT_EQ(before == after, skips || call == 0) << "overflow " << overflow << " call " << call;
          EXPECT_EQ(result.step, call - (call > overflow ? 1 : 0));
          EXPECT_EQ(result.loss_scale, scales[static_cast<size_t>(call)]);
          scale = result.loss_scale;
          before = std::move(after);
        }
        std::vector<int64_t> steps;
        for (int64_t step = 0; step < kCalls - 1; ++step) steps.push_back(step);
        EXPECT_EQ(plain_slots(group, model, steps, overflow), before) << "overflow " << overflow;
      }
    }
  });
}

TEST(DelayedSkips, ALossScaleThatTheCallerSetsIsThatOfLaterGradientsOnly) {
  Model model = skipping_model();
  model.recipe.keys.clear();
  model.recipe.clip_norm = 0.5;
  model.recipe.loss_scale = 4;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto plain = begun_optimizer(group, model, {.stage = 1});
    const auto late = begun_optimizer(group, delayed(model), {.stage = 1, .overlap = true});
    std::vector<double> norms;
    const double scales[] = {4, 16, 2, 1, 64};
    for (int64_t step = 0; step < 5; ++step) {
      const double scale = scales[step];
      expect_ok(late->set_f64(0, ZERO_KEY_LOSS_SCALE, scale), "set_f64");
      const double norm = plain_step(*late, model, step, scale, false).grad_norm;
      if (step > 0) {
        EXPECT_EQ(norm, norms.back());
      }
      if (step < 4) norms.push_back(plain_step(*plain, model, step, 4, false).grad_norm);
    }
    EXPECT_EQ(read_slots(*plain, model), read_slots(*late, model));
  });
}

TEST(DelayedSkips, AStepWithoutWeightIsAnErrorOfTheNextCallAndLosesNoOther) {
  Model model;
  model.counts = {300, 5};
  model.divisor = ZERO_DIVISOR_WEIGHTS;
  for (model.ranks = 1; model.ranks <= 2; ++model.ranks) {
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      const auto give = [&](Optimizer &optimizer, int64_t step, double weight) {
        expect_ok(optimizer.set_weight(weight), "set_weight");
        for (int64_t id = 0; id < model.tensors(); ++id) {
          std::vector<float> values;
          for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k)
            values.push_back(gradient_at(model, step, group->rank(), id, k));
          expect_ok(optimizer.grad_ready(id, values.data(), 0, std::ssize(values)), "grad_ready");
        }
        return run_task(optimizer, optimizer.step(nullptr));
      };
      const auto plain = begun_optimizer(group, model, {.stage = 1});
      for (const int64_t step : {0, 2, 3}) expect_ok(give(*plain, step, 2), "step");
      const auto late = begun_optimizer(group, delayed(model), {.stage = 1, .overlap = true});
      for (int64_t step = 0; step < 5; ++step) {
        const Status status = give(*late, step, step == 1 ? 0 : 2);
        EXPECT_EQ(status.code(), step == 2 ? ZERO_E_INVALID_ARGUMENT : ZERO_OK) << status.text();
      }
      EXPECT_EQ(read_slots(*plain, model), read_slots(*late, model));
    });
  }
}

TEST(DelayedSkips, ACallWithoutGradientsAppliesTheLast) {
  Model model;
  model.ranks = 2;
  model.counts = {300, 5};
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto plain = begun_optimizer(group, model, {.stage = 1});
    train_steps(*plain, model, {.stage = 1}, 0, 3);
    const auto late = begun_optimizer(group, delayed(model), {.stage = 1, .overlap = true});
    train_steps(*late, model, {.stage = 1}, 0, 3);
    zero_step_result result{};
    expect_ok(run_task(*late, late->sync(&result)), "sync");
    EXPECT_EQ(result.step, 2);
    expect_ok(run_task(*late, late->step(&result)), "step");
    EXPECT_EQ(result.step, 3);
    EXPECT_EQ(result.unfilled_count, 0);
    EXPECT_EQ(read_slots(*plain, model), read_slots(*late, model));
    // What was not given counts as zero, one call later.
    expect_ok(run_task(*late, late->step(&result)), "step");
    EXPECT_EQ(result.unfilled_count, 305);
  });
}

TEST(DelayedSkips, BeginDropsWhatWaits) {
  Model model;
  model.ranks = 3;
  model.counts = {3000, 0, 5, 257};
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto plain = begun_optimizer(group, model, {.stage = 1});
    for (const int64_t step : {0, 1, 2, 10, 11}) (void)train_step(*plain, model, {.stage = 1}, step);
    for (const bool overlap : {false, true}) {
      const Manner manner{.stage = 1, .bucket_nbytes = 4096, .overlap = overlap};
      const auto late = begun_optimizer(group, delayed(model), manner);
      train_steps(*late, model, manner, 0, 4);
      expect_ok(run_task(*late, late->begin(ZERO_SOURCE_SHARDS)), "begin");
      const zero_step_result first = train_step(*late, model, manner, 10);
      EXPECT_EQ(first.step, 3);
      EXPECT_EQ(first.skipped, 0);
      EXPECT_EQ(first.grad_norm, 0);
      train_steps(*late, model, manner, 11, 13);
      EXPECT_EQ(read_slots(*late, model), read_slots(*plain, model));
    }
  });
}

}  // namespace
}  // namespace zero::test::delayed_skips_test
