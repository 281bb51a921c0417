/// @file Steps: algorithms against float64, skipping, missing gradients, and the split form.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace zero::test::step_test {
namespace {

class StepStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, StepStages, testing::Range<int64_t>(0, 4));

/// A hyper-parameter of the model, or what it is where nobody sets it.
double hyper(const Model &model, int32_t key, double otherwise) {
  for (const auto &[set, value] : model.hyper) {
    if (set == key) return value;
  }
  return otherwise;
}

constexpr double kLr = 0.01;  // of all models

/// The mean over ranks of an element's gradients.
double mean_gradient(const Model &model, int64_t step, int64_t id, int64_t index) {
  double sum = 0;
  for (int64_t rank = 0; rank < model.ranks; ++rank) sum += gradient_at(model, step, rank, id, index);
  return sum / static_cast<double>(model.ranks);
}

/// What an update changes of an element.
struct Element {
  double p;
  double m = 0;
  double v = 0;
};

void sgd(const Model &model, double g, int64_t step, Element &e) {
  g += model.weight_decay * e.p;
  e.m = step == 0 ? g : model.momentum * e.m + (1 - hyper(model, ZERO_KEY_DAMPENING, 0)) * g;
  e.p -= kLr * (model.momentum == 0 ? g : model.nesterov != 0 ? g + model.momentum * e.m : e.m);
}

void adam(const Model &model, double g, int64_t step, Element &e) {
  const auto t = static_cast<double>(step + 1);
  const double beta1 = hyper(model, ZERO_KEY_BETA1, 0.9);
  const double beta2 = hyper(model, ZERO_KEY_BETA2, 0.999);
  const double epsilon = hyper(model, ZERO_KEY_EPSILON, 1e-8);
  if (model.algorithm == "adam") g += model.weight_decay * e.p;
  if (model.algorithm == "adamw") e.p *= 1 - kLr * model.weight_decay;
  e.m += (1 - beta1) * (g - e.m);
  e.v = beta2 * e.v + (1 - beta2) * g * g;
  e.p -= kLr / (1 - std::pow(beta1, t)) * e.m / (std::sqrt(e.v) / std::sqrt(1 - std::pow(beta2, t)) + epsilon);
}

void adagrad(const Model &model, double g, int64_t step, Element &e) {
  g += model.weight_decay * e.p;
  if (step == 0) e.v = hyper(model, ZERO_KEY_INITIAL_ACCUMULATOR, 0);
  e.v += g * g;
  const double rate = kLr / (1 + static_cast<double>(step) * hyper(model, ZERO_KEY_LR_DECAY, 0));
  e.p -= rate * g / (std::sqrt(e.v) + hyper(model, ZERO_KEY_EPSILON, 1e-10));
}

/// One element's training in double, as zero/optimizer.h states the rules.
double train_double(const Model &model, int64_t id, int64_t index) {
  const auto update = model.algorithm == "sgd" ? sgd : model.algorithm == "adagrad" ? adagrad : adam;
  Element e{.p = first_value_at(model, id, index)};
  for (int64_t step = 0; step < model.steps; ++step) update(model, mean_gradient(model, step, id, index), step, e);
  return e.p;
}

/// Trains over all ranks and returns the largest difference from expected(tensor, element).
template <class Expected>
double largest_difference(const Model &model, const Manner &manner, Expected &&expected) {
  double worst = 0;
  std::mutex mutex;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const Outcome outcome = train(group, model, manner);
    size_t at = 0;
    const std::lock_guard lock(mutex);
    for (int64_t id = 0; id < model.tensors(); ++id) {
      for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) {
        worst = std::max(worst, std::abs(outcome.params[at++] - expected(id, k)));
      }
    }
  });
  return worst;
}

/// Every row's values are its own, so that one taken for another shows.
TEST_P(StepStages, FollowFloat64For100Steps) {
  const struct {
    const char *algorithm;
    double momentum, nesterov;
    std::vector<std::pair<int32_t, double>> hyper;
  } cases[] = {
      {"sgd", 0, 0, {}},   {"sgd", 0.9, 0, {}},
      {"sgd", 0.9, 1, {}}, {"sgd", 0.8, 0, {{ZERO_KEY_DAMPENING, 0.3}}},
      {"adam", 0, 0, {}},  {"adam", 0, 0, {{ZERO_KEY_BETA1, 0.7}, {ZERO_KEY_BETA2, 0.95}, {ZERO_KEY_EPSILON, 0.02}}},
      {"adamw", 0, 0, {}}, {"adagrad", 0, 0, {{ZERO_KEY_LR_DECAY, 0.05}, {ZERO_KEY_INITIAL_ACCUMULATOR, 0.4}, {ZERO_KEY_EPSILON, 0.03}}},
  };
  for (const auto &row : cases) {
    Model model;
    model.ranks = 3;
    model.counts = {700, 0, 31, 257};
    model.algorithm = row.algorithm;
    model.momentum = row.momentum;
    model.nesterov = row.nesterov;
    model.hyper = row.hyper;
    model.steps = 100;
    Manner manner;
    manner.stage = GetParam();
    manner.bucket_nbytes = 1024;
    const double worst = largest_difference(model, manner, [&](int64_t id, int64_t k) { return train_double(model, id, k); });
    // 100 roundings of values near 1, and gradients near 0 whose direction Adam amplifies.
    EXPECT_LT(worst, 1e-5) << row.algorithm;
    std::printf("stage %lld %s momentum %g nesterov %g further %zu: largest difference from float64 %.3g\n",
                static_cast<long long>(GetParam()), row.algorithm, row.momentum, row.nesterov, row.hyper.size(), worst);
  }
}

/// A column of two elements has a direction of norm 1, whose singular value each iteration of Newton and Schulz maps by one polynomial.
TEST_P(StepStages, MuonTakesAsManyIterationsAsItIsTold) {
  for (const double iterations : {2.0, 5.0}) {
    Model model;
    model.ranks = 2;
    model.counts = {2};
    model.algorithm = "muon";
    model.hyper = {{ZERO_KEY_NEWTON_SCHULZ_STEPS, iterations}, {ZERO_KEY_MOMENTUM, 0.5}, {ZERO_KEY_NESTEROV, 0}};
    model.steps = 1;
    Manner manner;
    manner.stage = GetParam();
    const double g[] = {mean_gradient(model, 0, 0, 0), mean_gradient(model, 0, 0, 1)};
    double singular = 1;
    for (int i = 0; i < static_cast<int>(iterations); ++i) {
      const double square = singular * singular;
      singular *= 3.4445 - 4.7750 * square + 2.0315 * square * square;
    }
    const auto [rows, columns] = std::pair(model.shape(0)[0], model.shape(0)[1]);
    const double rate = kLr * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    const double worst = largest_difference(model, manner, [&](int64_t, int64_t k) {
      return first_value_at(model, 0, k) * (1 - kLr * model.weight_decay) - rate * singular * g[k] / std::hypot(g[0], g[1]);
    });
    EXPECT_LT(worst, 1e-6) << iterations;
  }
}

TEST_P(StepStages, ANonFiniteGradientAnywhereSkipsTheStepEverywhere) {
  Model model;
  model.counts = {300, 5, 40};
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 1024;
  for (const int64_t ranks : {1, 3}) {
    model.ranks = ranks;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_step(*optimizer, model, manner, 0);
      const std::vector<float> params = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
      const std::vector<float> squares = read_slot(*optimizer, model, ZERO_SLOT_SECOND_MOMENT);
      int64_t skipped = 0;
      for (int64_t culprit = 0; culprit < ranks; ++culprit) {
        for (int64_t element = 0; element < 345; element += full_tests() ? 1 : 23) {
          constexpr float kInfinity = std::numeric_limits<float>::infinity();
          constexpr float kValues[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
          int64_t begin = 0;
          for (int64_t id = 0; id < 3; ++id) {
            const int64_t count = model.counts[static_cast<size_t>(id)];
            std::vector<float> grad(static_cast<size_t>(count), 1.0F);
            if (group->rank() == culprit && element >= begin && element < begin + count) {
              grad[static_cast<size_t>(element - begin)] = kValues[element % 3];
            }
            begin += count;
            ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, count).ok());
          }
          zero_step_result result{};
          ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
          ++skipped;
          EXPECT_EQ(result.skipped, 1);
          EXPECT_EQ(result.skipped_total, skipped);
          EXPECT_EQ(result.step, 1);
        }
      }
      EXPECT_EQ(differing(params, read_slot(*optimizer, model, ZERO_SLOT_PARAM)), 0);
      EXPECT_EQ(differing(squares, read_slot(*optimizer, model, ZERO_SLOT_SECOND_MOMENT)), 0);
    });
  }
}

TEST_P(StepStages, AFiniteSumThatOverflowsSkipsToo) {
  Model model;
  model.ranks = 2;
  model.counts = {20};
  model.divisor = ZERO_DIVISOR_ONE;
  Manner manner;
  manner.stage = GetParam();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const std::vector<float> grad(20, 3e38F);
    ASSERT_TRUE(optimizer->grad_ready(0, grad.data(), 0, 20).ok());
    zero_step_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
    EXPECT_EQ(result.skipped, 1);
  });
}

TEST_P(StepStages, MissingGradientsCountAsZeroAndAreTold) {
  Model model;
  model.ranks = 2;
  model.counts = {300, 40, 600};
  model.algorithm = "sgd";
  model.weight_decay = 0;
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 1024;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < 3; ++step) train_step(*optimizer, model, manner, step);
    const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    const std::vector<float> grad(300, 1.0F);
    if (group->rank() == 0) {
      ASSERT_TRUE(optimizer->grad_ready(0, grad.data(), 10, 20).ok());
    }
    void *unused = nullptr;
    int64_t accumulate = 0;
    ASSERT_TRUE(optimizer->grad_acquire(2, &unused, &accumulate).ok());
    zero_step_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
    EXPECT_EQ(result.unfilled_count, group->rank() == 0 ? 920 : 940);
    EXPECT_EQ(result.skipped, 0);
    const std::vector<float> after = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    for (size_t i = 0; i < after.size(); ++i) {
      const float expected = i >= 10 && i < 30 ? std::fma(-0.01F, 0.5F, before[i]) : before[i];
      EXPECT_EQ(after[i], expected) << i;
    }
  });
}

TEST_P(StepStages, TheCallersOwnAlgorithmRunsOnViews) {
  Model model;
  model.ranks = 2;
  model.counts = {300, 7, 900};
  model.algorithm = "custom";
  Manner manner;
  manner.stage = GetParam();
  manner.bucket_nbytes = 2048;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_STATE);
    for (int64_t id = 0; id < 3; ++id) {
      const auto count = static_cast<size_t>(model.counts[static_cast<size_t>(id)]);
      const std::vector<float> grad(count, static_cast<float>(id + 1 + 2 * group->rank()));
      ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, static_cast<int64_t>(grad.size())).ok());
    }
    zero_step_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(&result)).ok());
    EXPECT_EQ(result.step, 1);
    EXPECT_EQ(run_task(*optimizer, optimizer->apply()).code(), ZERO_E_STATE);
    int64_t views = 0;
    ASSERT_TRUE(optimizer->view_count(&views).ok());
    for (int64_t i = 0; i < views; ++i) {
      View param{};
      View grad{};
      ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_PARAM, &param).ok());
      ASSERT_TRUE(optimizer->view(i, ZERO_SLOT_GRAD, &grad).ok());
      EXPECT_EQ(optimizer->view(i, ZERO_SLOT_FIRST_MOMENT, &grad).code(), ZERO_E_UNSUPPORTED);
      for (int64_t k = 0; k < param.count; ++k) static_cast<float *>(param.data)[k] -= static_cast<const float *>(grad.data)[k];
    }
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    const std::vector<float> after = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    size_t at = 0;
    for (int64_t id = 0; id < 3; ++id) {
      const auto subtracted = static_cast<float>(id + 2);
      for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k, ++at) EXPECT_EQ(after[at], before[at] - subtracted);
    }
    int64_t steps = 0;
    ASSERT_TRUE(optimizer->get_i64(ZERO_KEY_STEP_COUNT, &steps).ok());
    EXPECT_EQ(steps, 1);
  });
}

TEST_P(StepStages, TheSplitStepIsTheStep) {
  Model model;
  model.ranks = 2;
  model.counts = {500, 30};
  Manner manner;
  manner.stage = GetParam();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Outcome whole = train(group, model, manner);
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < model.steps; ++step) {
      give_gradients(*optimizer, model, manner, step);
      zero_step_result result{};
      ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(&result)).ok());
      EXPECT_EQ(result.step, step + 1);
      const std::vector<float> grads = read_slot(*optimizer, model, ZERO_SLOT_GRAD);
      double squares = 0;
      for (const float value : grads) squares += static_cast<double>(value) * value;
      EXPECT_NEAR(result.grad_norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
      ASSERT_TRUE(run_task(*optimizer, optimizer->apply()).ok());
      EXPECT_EQ(run_task(*optimizer, optimizer->apply()).code(), ZERO_E_STATE);
      ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    }
    EXPECT_EQ(differing(whole.params, read_slot(*optimizer, model, ZERO_SLOT_PARAM)), 0);
  });
}

/// What every rank's update will sum waits for nobody.
TEST(Stalled, GradientsThatComeInTheirOrderAreNot) {
  for (const bool overlap : {false, true}) {
    Model model;
    model.ranks = 2;
    model.counts = {1024, 1024, 1024, 1024};
    Manner manner;
    manner.stage = 1;
    manner.bucket_nbytes = 4096;
    manner.norm = false;
    manner.overlap = overlap;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      for (int64_t step = 0; step < 2; ++step) train_step(*optimizer, model, manner, step);
      EXPECT_EQ(optimizer->step_times().stalled_nbytes, 0);
    });
  }
}

/// A rank that heard of the failure of its group tells those that wait for it in the optimizer, whose groups are others.
TEST_P(StepStages, AFailureOfTheGroupEndsStepsThatWait) {
  Model model;
  model.ranks = 3;
  model.counts = {300};
  Manner manner;
  manner.stage = GetParam();
  std::barrier gone(3);
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    gone.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    if (group->rank() != 1) group->fail(Status::error(ZERO_E_MISMATCH, "ranks called different collectives"));
    const Status status = run_task(*optimizer, optimizer->step(nullptr));
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), ZERO_E_TIMEOUT) << status.text();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // the deadline is 60 s
    // Nobody releases anything before all know.
    gone.arrive_and_wait();
  });
}

}  // namespace
}  // namespace zero::test::step_test
