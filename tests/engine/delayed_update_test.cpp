/// @file Delayed updates: their bits beside plain runs and a plain program, and their bounds of stability.
#include "tests/engine/delayed_model.h"
#include "tests/engine/plain_replicas.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero::test::delayed_update_test {
namespace {

Model one_step_less(Model model) {
  --model.steps;
  return model;
}

/// Gradients of these trainings do not depend on parameters: delayed steps end with what one plain step less leaves.
void expect_one_step_behind(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner,
                            const Manner &plain_manner = {}) {
  const Outcome plain = train(group, one_step_less(model), plain_manner);
  Outcome late = train(group, delayed(model), manner);
  ASSERT_EQ(std::ssize(late.norms), model.steps);
  EXPECT_EQ(late.norms.front(), 0);
  late.norms.erase(late.norms.begin());
  late.scales.erase(late.scales.begin());
  if (!manner.norm && model.recipe.clip_norm == 0) late.norms = plain.norms;
  EXPECT_EQ(differing(plain, late), 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
  EXPECT_EQ(plain.unfilled, late.unfilled);
}

struct Case {
  const char *name;
  std::function<void(Model &)> set;
};

const Case kCases[] = {
    {"Sgd", [](Model &model) { model.algorithm = "sgd"; }},
    {"Nesterov",
     [](Model &model) {
       model.algorithm = "sgd";
       model.momentum = 0.9;
       model.nesterov = 1;
       model.recipe.tied = true;
     }},
    {"AdamwClipped",
     [](Model &model) {
       model.recipe.clip_norm = 0.5;
       model.recipe.loss_scale = 16;
       model.recipe.frozen_every = 3;
       model.recipe.average = true;
     }},
    {"AdamBf16Weights",
     [](Model &model) {
       model.algorithm = "adam";
       model.divisor = ZERO_DIVISOR_WEIGHTS;
       model.recipe.dtype = DType::bf16;
       model.recipe.micro_steps = {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
     }},
    {"Lion", [](Model &model) { model.algorithm = "lion"; }},
    {"LambCoded",
     [](Model &model) {
       model.algorithm = "lamb";
       model.recipe.coded = true;
     }},
    {"Muon", [](Model &model) { model.algorithm = "muon"; }},
    {"AdamwUntouched",
     [](Model &model) {
       model.recipe.untouched = true;
       model.recipe.unfilled_seed = 7;
       model.recipe.micro_steps = {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LOCAL};
       model.divisor = ZERO_DIVISOR_ONE;
     }},
};

std::string case_name(const testing::TestParamInfo<Case> &info) { return info.param.name; }

class DelayedUpdate : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, DelayedUpdate, testing::ValuesIn(kCases), case_name);

TEST_P(DelayedUpdate, HasTheBitsOfAPlainRunThatIsOneStepBehind) {
  Model model;
  model.counts = {257, 0, 1, 255, 256, 2000, 257};
  model.steps = 5;
  GetParam().set(model);
  for (model.ranks = 1; model.ranks <= 4; ++model.ranks) {
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      for (const int64_t stage : {0, 1}) {
        for (const bool overlap : {false, true}) {
          Manner manner{.stage = stage, .bucket_nbytes = 2048, .overlap = overlap};
          manner.splits = overlap && stage == 1;
          manner.caller_memory = stage == 0;
          expect_one_step_behind(group, model, manner);
        }
      }
    });
  }
}

TEST(DelayedUpdateEdges, FewerElementsThanRanksAndNone) {
  for (const std::vector<int64_t> &counts : {std::vector<int64_t>{1}, {0}, {0, 3, 0}, {255}, {257, 1}}) {
    Model model;
    model.ranks = 4;
    model.counts = counts;
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      for (const int64_t stage : {0, 1}) expect_one_step_behind(group, model, {.stage = stage, .overlap = true});
    });
  }
}

/// Micro-steps that reduce are left out, and so are overflows, whose loss scales differ.
TEST(DelayedUpdateEdges, RandomModelsInRandomManners) {
  for (uint64_t seed = 1; seed <= (full_tests() ? 120U : few_tests() ? 4U : 40U); ++seed) {
    const int64_t ranks = static_cast<int64_t>(seed % 4) + 1;
    Model model = random_model(seed, ranks, 3000);
    model.recipe = random_recipe(seed, model.algorithm);
    model.recipe.overflow_step = -1;
    for (int32_t &kind : model.recipe.micro_steps) kind = kind == ZERO_MICRO_STEP_REDUCE ? ZERO_MICRO_STEP_LOCAL : kind;
    Manner manner = random_manner(seed, ranks);
    manner.stage %= 2;
    manner.one_copy = false;
    manner.verify_every = static_cast<int64_t>(seed % 3);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) { expect_one_step_behind(group, model, manner); });
  }
}

/// Ranks that share no memory gather parameters behind the step, while gradients are reduced.
TEST(DelayedUpdateEdges, HostsAndReplicas) {
  Model model;
  model.ranks = 4;
  model.counts = {3000, 40, 0, 257, 2500};
  run_hosts(4, 2, [&](const std::shared_ptr<Group> &group) {
    for (const int64_t stage : {0, 1}) expect_one_step_behind(group, model, {.stage = stage, .bucket_nbytes = 4096, .overlap = true});
    for (const int64_t code : {ZERO_CODE_NONE, ZERO_CODE_I8}) {
      Model coded = model;
      coded.recipe.grad_code = code;
      coded.recipe.flush_period = code != ZERO_CODE_NONE ? 3 : 0;
      coded.steps = 6;
      const Manner plain{.stage = 1, .bucket_nbytes = 4096, .replica_ranks = 2};
      for (const bool overlap : {false, true})
        expect_one_step_behind(group, coded, {.stage = 1, .bucket_nbytes = 4096, .overlap = overlap, .replica_ranks = 2}, plain);
    }
  });
}

TEST(DelayedUpdateEdges, ThePlainKernelsEndWithTheSame) {
  for (const char *algorithm : {"sgd", "adamw"}) {
    Model model;
    model.ranks = 3;
    model.counts = {257, 0, 700, 1};
    model.algorithm = algorithm;
    model.divisor = ZERO_DIVISOR_WEIGHTS;
    model.steps = 6;
    const Outcome expected = reference_training(one_step_less(model));
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
      for (const int64_t stage : {0, 1}) {
        const Outcome late = train(group, delayed(model), {.stage = stage, .overlap = true});
        EXPECT_EQ(differing(expected.params, late.params), 0);
        EXPECT_EQ(differing(expected.states, late.states), 0);
      }
    });
  }
}

// Gradients that depend on the parameters.

Model program_model(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {257, 0, 1, 300};
  model.algorithm = "sgd";
  model.weight_decay = 0;
  return model;
}

/// Of one rank, at the parameter `value`.
float gradient_of(const Model &model, int64_t step, int64_t rank, int64_t id, int64_t index, float value) {
  return 0.25F * static_cast<float>(rank + 1) * value + gradient_at(model, step, rank, id, index);
}

/// w(t+1) = w(t) - rate g(w(t-1)) in fp32, without ranks, buckets and slots.
class DelayedProgram {
 public:
  explicit DelayedProgram(const Model &model) : model_(model) {
    for (int64_t id = 0; id < model.tensors(); ++id) {
      std::vector<float> values;
      for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) values.push_back(first_value_at(model, id, k));
      values_.push_back(std::move(values));
    }
  }

  void step(int64_t step) {
    std::vector<std::vector<float>> next;
    for (int64_t id = 0; id < model_.tensors(); ++id) {
      std::vector<float> &values = values_[static_cast<size_t>(id)];
      std::vector<float> &given = next.emplace_back();
      for (size_t k = 0; k < values.size(); ++k) {
        const auto of = [&](int64_t rank) { return gradient_of(model_, step, rank, id, static_cast<int64_t>(k), values[k]); };
        given.push_back(tree_sum(0, model_.ranks, of) / static_cast<float>(model_.ranks));
      }
      for (size_t k = 0; k < values.size() && !waiting_.empty(); ++k)
        values[k] = std::fma(static_cast<float>(-kPlainRate), waiting_[static_cast<size_t>(id)][k], values[k]);
    }
    waiting_ = std::move(next);
  }

  const std::vector<float> &values(int64_t id) const { return values_[static_cast<size_t>(id)]; }

 private:
  const Model &model_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> waiting_;
};

std::vector<float> acquired(Optimizer &optimizer, const Model &model, int64_t id) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  std::vector<float> values(static_cast<size_t>(count));
  void *data = nullptr;
  expect_ok(run_task(optimizer, optimizer.param_acquire(id, values.data(), count, &data)), "param_acquire");
  expect_ok(optimizer.param_release(id), "param_release");
  return values;
}

TEST(DelayedProgram, FollowsTheRuleBitForBit) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    const Model model = program_model(ranks);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      for (int64_t at = 0; at < 4; ++at) {
        const Manner manner{.stage = at % 2, .bucket_nbytes = 1024, .overlap = at / 2 == 1};
        const auto optimizer = begun_optimizer(group, delayed(model), manner);
        DelayedProgram program(model);
        for (int64_t step = 0; step < 12; ++step) {
          for (int64_t id = model.tensors() - 1; id >= 0; --id) {
            std::vector<float> values = acquired(*optimizer, model, id);
            EXPECT_EQ(differing(values, program.values(id)), 0) << "step " << step << " tensor " << id;
            for (size_t k = 0; k < values.size(); ++k)
              values[k] = gradient_of(model, step, group->rank(), id, static_cast<int64_t>(k), values[k]);
            expect_ok(optimizer->grad_ready(id, values.data(), 0, std::ssize(values)), "grad_ready");
          }
          zero_step_result result{};
          expect_ok(run_task(*optimizer, optimizer->step(&result)), "step");
          program.step(step);
          EXPECT_EQ(result.step, step);
          EXPECT_EQ(result.skipped, 0);
          EXPECT_EQ(result.unfilled_count, 0);
        }
      }
    });
  }
}

// Closed forms.

struct Swing {
  double end = 0;    ///< the largest magnitude of the last hundred steps
  double error = 0;  ///< the largest difference to float64 in the first two hundred steps
};

/// sgd on w^2 / 2 from w = 1, beside v = mu v + w(t-1), w = w - lr v in float64.
Swing swing_of(const std::shared_ptr<Group> &group, double lr, double momentum, int64_t steps, bool delays) {
  Model model;
  model.ranks = group->size();
  model.counts = {1};
  model.algorithm = "sgd";
  model.momentum = momentum;
  model.weight_decay = 0;
  model.hyper = {{ZERO_KEY_LR, lr}};
  if (delays) model = delayed(model);
  const auto optimizer = make_optimizer(group, model, {.stage = 1, .norm = false});
  void *data = nullptr;
  expect_ok(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)), "param_acquire");
  *static_cast<float *>(data) = 1;
  expect_ok(optimizer->param_release(0), "param_release");
  expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "begin");
  Swing swing;
  double w = 1;
  double v = 0;
  double before = 0;
  for (int64_t step = 0; step < steps; ++step) {
    expect_ok(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)), "param_acquire");
    const float value = *static_cast<float *>(data);
    expect_ok(optimizer->param_release(0), "param_release");
    if (step < 200) swing.error = std::max(swing.error, std::abs(double{value} - w));
    if (step >= steps - 100) swing.end = std::max(swing.end, std::abs(double{value}));
    expect_ok(optimizer->grad_ready(0, &value, 0, 1), "grad_ready");
    expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
    v = momentum * v + (delays ? before : w);
    before = w;
    w -= lr * v;
  }
  return swing;
}

TEST(DelayedBounds, SgdIsStableBelowRateOneOfTheCurvatureAndNotAbove) {
  for (const int64_t ranks : {1, 2}) {
    run_world(ranks, [](const std::shared_ptr<Group> &group) {
      const double bound = 2 * std::sin(std::acos(-1.0) / 6);
      const Swing below = swing_of(group, 0.99 * bound, 0, 2000, true);
      const Swing above = swing_of(group, 1.01 * bound, 0, 2000, true);
      EXPECT_LT(below.end, 1e-3);
      EXPECT_GT(above.end, 1e3);
      EXPECT_LT(below.error, 1e-4);
      EXPECT_LT(above.error, 1e-3);
      EXPECT_LT(swing_of(group, 1.9, 0, 500, false).end, 1e-3);
    });
  }
}

TEST(DelayedBounds, MomentumLeavesOneMinusIt) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const double momentum : {0.5, 0.9}) {
      const int64_t steps = momentum == 0.5 ? 4000 : 16'000;
      const Swing below = swing_of(group, 0.99 * (1 - momentum), momentum, steps, true);
      const Swing above = swing_of(group, 1.01 * (1 - momentum), momentum, steps, true);
      EXPECT_LT(below.end, 1e-2) << momentum;
      EXPECT_GT(above.end, 1e2) << momentum;
      EXPECT_LT(below.error, 1e-3) << momentum;
      EXPECT_LT(above.error, 1e-3) << momentum;
      EXPECT_LT(swing_of(group, 1, momentum, 2000, false).end, 1e-3) << momentum;
    }
  });
}

}  // namespace
}  // namespace zero::test::delayed_update_test
