/// @file The loss scale: static and dynamic, step by step against tables written by hand.
#include "tests/algorithms.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zero::test::loss_scale_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// One tensor of 300 elements of a dtype.
std::shared_ptr<Optimizer> make_plain(const std::shared_ptr<Group> &group, const Config &config, DType dtype) {
  std::shared_ptr<Optimizer> optimizer;
  Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_TRUE(status.ok()) << status.text();
  if (optimizer == nullptr) return optimizer;
  const int64_t count = 300;
  int64_t id = 0;
  EXPECT_TRUE(optimizer->add_param(nullptr, "p", static_cast<int32_t>(dtype), &count, 1, &id).ok());
  status = group->queue()->run(optimizer->seal());
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
  return optimizer;
}

zero_step_result step_with(Optimizer &optimizer, float value, DType dtype) {
  const std::vector<std::byte> grad = encode(std::vector<float>(300, value), dtype);
  EXPECT_TRUE(optimizer.grad_ready(0, grad.data(), 0, 300).ok());
  zero_step_result result{};
  const Status status = run_task(optimizer, optimizer.step(&result));
  EXPECT_TRUE(status.ok()) << status.text();
  return result;
}

int64_t scalar(const Optimizer &optimizer, int32_t key) {
  int64_t value = -1;
  EXPECT_TRUE(optimizer.get_i64(key, &value).ok());
  return value;
}

/// What the step before left, and what this one does.
struct Row {
  bool overflows;
  double scale;          ///< after the step
  int64_t growth_count;  ///< steps without overflow since the scale last changed
  int64_t swallowed;     ///< overflows since the scale last grew that did not lower it
  int64_t step;
  int64_t skipped_total;
};

struct Dynamic {
  double first;
  int64_t window;
  int64_t hysteresis;
  double backoff;
  double growth;
  double least;
  double most;
};

Config dynamic_config(const Dynamic &dynamic, int64_t stage) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_LOSS_SCALE_DYNAMIC, 1).ok());
  if (dynamic.first != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE, dynamic.first).ok());
  }
  if (dynamic.window != 0) {
    EXPECT_TRUE(config.set_i64(ZERO_KEY_LOSS_SCALE_WINDOW, dynamic.window).ok());
  }
  if (dynamic.hysteresis != 0) {
    EXPECT_TRUE(config.set_i64(ZERO_KEY_LOSS_SCALE_HYSTERESIS, dynamic.hysteresis).ok());
  }
  if (dynamic.backoff != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE_BACKOFF, dynamic.backoff).ok());
  }
  if (dynamic.growth != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE_GROWTH, dynamic.growth).ok());
  }
  if (dynamic.least != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE_MIN, dynamic.least).ok());
  }
  if (dynamic.most != 0) {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE_MAX, dynamic.most).ok());
  }
  return config;
}

/// The last rank alone overflows.
void expect_rows(const Dynamic &dynamic, const std::vector<Row> &rows) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (const int64_t ranks : {1, 3}) {
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = make_plain(group, dynamic_config(dynamic, stage), DType::f32);
        ASSERT_NE(optimizer, nullptr);
        for (size_t i = 0; i < rows.size(); ++i) {
          const Row &row = rows[i];
          const bool mine = row.overflows && group->rank() == ranks - 1;
          const zero_step_result result = step_with(*optimizer, mine ? kInfinity : 1.0F, DType::f32);
          EXPECT_EQ(result.skipped, row.overflows ? 1 : 0) << i;
          EXPECT_EQ(result.loss_scale, row.scale) << i;
          EXPECT_EQ(result.step, row.step) << i;
          EXPECT_EQ(result.skipped_total, row.skipped_total) << i;
          double scale = 0;
          EXPECT_TRUE(optimizer->get_f64(0, ZERO_KEY_LOSS_SCALE, &scale).ok());
          EXPECT_EQ(scale, row.scale);
          EXPECT_EQ(scalar(*optimizer, ZERO_KEY_GROWTH_COUNT), row.growth_count) << i;
          EXPECT_EQ(scalar(*optimizer, ZERO_KEY_OVERFLOW_COUNT), row.swallowed) << i;
          EXPECT_EQ(scalar(*optimizer, ZERO_KEY_STEP_COUNT), row.step);
          EXPECT_EQ(scalar(*optimizer, ZERO_KEY_SKIPPED_COUNT), row.skipped_total);
        }
      });
    }
  }
}

TEST(DynamicLossScale, BeginsAt65536AndHalvesWithEachOverflow) {
  expect_rows({}, {{true, 32768, 0, 0, 0, 1}, {true, 16384, 0, 0, 0, 2}, {false, 16384, 1, 0, 1, 2}, {true, 8192, 0, 0, 1, 3}});
}

TEST(DynamicLossScale, GrowsAfterAWindowOfStepsWithoutOverflow) {
  expect_rows({64, 3, 0, 0, 0, 0, 0}, {{false, 64, 1, 0, 1, 0},
                                       {false, 64, 2, 0, 2, 0},
                                       {true, 32, 0, 0, 2, 1},  // the window begins anew
                                       {false, 32, 1, 0, 3, 1},
                                       {false, 32, 2, 0, 4, 1},
                                       {false, 64, 0, 0, 5, 1},
                                       {false, 64, 1, 0, 6, 1},
                                       {false, 64, 2, 0, 7, 1},
                                       {false, 128, 0, 0, 8, 1}});
}

TEST(DynamicLossScale, HysteresisSwallowsOverflowsUntilTheScaleGrows) {
  expect_rows({64, 2, 3, 0, 0, 0, 0}, {{true, 64, 0, 1, 0, 1},
                                       {false, 64, 1, 1, 1, 1},  // what was swallowed stays so
                                       {true, 64, 0, 2, 1, 2},
                                       {true, 32, 0, 2, 1, 3},  // the third since the scale last grew
                                       {true, 16, 0, 2, 1, 4},  // and every one after it
                                       {false, 16, 1, 2, 2, 4},
                                       {false, 32, 0, 0, 3, 4},  // grown: two more will be swallowed
                                       {true, 32, 0, 1, 3, 5},
                                       {true, 32, 0, 2, 3, 6},
                                       {true, 16, 0, 2, 3, 7}});
}

TEST(DynamicLossScale, KeepsWithinItsBoundsAndUsesItsFactors) {
  expect_rows({100, 1, 0, 0.25, 3, 20, 250}, {{false, 250, 0, 0, 1, 0},  // 300 is above the most
                                              {false, 250, 0, 0, 2, 0},
                                              {true, 62.5, 0, 0, 2, 1},
                                              {true, 20, 0, 0, 2, 2},  // 15.625 is below the least
                                              {true, 20, 0, 0, 2, 3},
                                              {false, 60, 0, 0, 3, 3}});
}

class LossScaleStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, LossScaleStages, testing::Range<int64_t>(0, 4));

/// Powers of two change no bits of fp32, as long as nothing leaves its range.
TEST_P(LossScaleStages, AStaticScaleIsTakenOutAgainToTheBit) {
  for (const int64_t ranks : {1, 2, 3}) {
    for (const char *algorithm : elementwise_names()) {
      Model model;
      model.ranks = ranks;
      model.counts = {300, 31};
      model.algorithm = algorithm;
      model.steps = 5;
      Manner manner;
      manner.stage = GetParam();
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const Outcome plain = train(group, model, manner);
        for (const double scale : {0x1p-20, 1024.0, 0x1p40}) {
          Model scaled = model;
          scaled.recipe.loss_scale = scale;
          const Outcome outcome = train(group, scaled, manner);
          EXPECT_TRUE(outcome.slots == plain.slots);
          EXPECT_TRUE(outcome.norms == plain.norms);
          EXPECT_EQ(outcome.scales, std::vector<double>(5, scale));
        }
      });
    }
  }
}

TEST_P(LossScaleStages, AStaticScaleStaysThroughOverflows) {
  Config config;
  ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, GetParam()).ok());
  ASSERT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE, 512).ok());
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_plain(group, config, DType::f16);
    for (int64_t step = 1; step <= 3; ++step) {
      const zero_step_result result = step_with(*optimizer, group->rank() == step % 3 ? -kInfinity : 0.5F, DType::f16);
      EXPECT_EQ(result.skipped, 1);
      EXPECT_EQ(result.skipped_total, step);
      EXPECT_EQ(result.loss_scale, 512);
    }
    EXPECT_TRUE(optimizer->set_f64(0, ZERO_KEY_LOSS_SCALE, 256).ok());
    const zero_step_result result = step_with(*optimizer, 0.5F, DType::f16);
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(result.step, 1);
    EXPECT_EQ(result.loss_scale, 256);
  });
}

/// 2 * 40000 is above 65504, the largest of f16, while each rank's gradient is below it.
TEST_P(LossScaleStages, FiniteGradientsWhoseSumLeavesF16SkipTheStep) {
  for (const bool averages : {false, true}) {
    Config config = dynamic_config({1024, 0, 0, 0, 0, 0, 0}, GetParam());
    ASSERT_TRUE(config.set_i64(ZERO_KEY_DIVISOR, averages ? ZERO_DIVISOR_RANKS : ZERO_DIVISOR_ONE).ok());
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = make_plain(group, config, DType::f16);
      const zero_step_result result = step_with(*optimizer, 40'000, DType::f16);
      EXPECT_EQ(result.skipped, averages ? 0 : 1) << "the average is finite, the sum is not";
      EXPECT_EQ(result.loss_scale, averages ? 1024 : 512);
      EXPECT_EQ(step_with(*optimizer, 30'000, DType::f16).skipped, 0);
      EXPECT_EQ(step_with(*optimizer, -40'000, DType::f16).skipped, averages ? 0 : 1);
    });
  }
}

TEST_P(LossScaleStages, LocalSumsThatLeaveF16SkipTheStep) {
  for (const int64_t ranks : {1, 2}) {
    for (const bool in_f32 : {false, true}) {
      Config config = dynamic_config({1024, 0, 0, 0, 0, 0, 0}, GetParam());
      if (in_f32) {
        ASSERT_TRUE(config.set_i64(ZERO_KEY_ACCUMULATE_DTYPE, ZERO_DTYPE_F32).ok());
      }
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = make_plain(group, config, DType::f16);
        const std::vector<std::byte> grad = encode(std::vector<float>(300, 40'000), DType::f16);
        // Rank 0 alone overflows; sums in f32 travel in the gradient's dtype, so they do as well.
        for (const int32_t kind : {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST}) {
          ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(kind)).ok());
          if (group->rank() == 0) {
            ASSERT_TRUE(optimizer->grad_ready(0, grad.data(), 0, 300).ok());
          }
        }
        zero_step_result result{};
        ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
        EXPECT_EQ(result.skipped, 1);
        EXPECT_EQ(result.loss_scale, 512);
      });
    }
  }
}

/// Sums of shards are fp32: what overflows f16 on the way but not in the end is no overflow.
TEST_P(LossScaleStages, SumsOfShardsMayPassBeyondF16) {
  Config config = dynamic_config({1024, 0, 0, 0, 0, 0, 0}, GetParam());
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_plain(group, config, DType::f16);
    for (const float value : {40'000.0F, -30'000.0F}) {
      ASSERT_TRUE(run_task(*optimizer, optimizer->micro_step(ZERO_MICRO_STEP_REDUCE)).ok());
      const std::vector<std::byte> grad = encode(std::vector<float>(300, value), DType::f16);
      ASSERT_TRUE(optimizer->grad_ready(0, grad.data(), 0, 300).ok());
    }
    zero_step_result result{};
    ASSERT_TRUE(run_task(*optimizer, optimizer->step(&result)).ok());
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(result.loss_scale, 1024);
  });
}

/// Moves the scalars of one run into another, which goes on as the first does.
TEST_P(LossScaleStages, ScalarsAreCarriedOver) {
  const Config config = dynamic_config({64, 4, 3, 0, 0, 0, 0}, GetParam());
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const bool rows[] = {true, false, true, false, false, true, true, false, false, false, false, false, true, true};
    const auto first = make_plain(group, config, DType::f32);
    for (size_t stop = 1; stop < std::size(rows); ++stop) {
      (void)step_with(*first, rows[stop - 1] ? kInfinity : 1.0F, DType::f32);
      const auto second = make_plain(group, config, DType::f32);
      double scale = 0;
      ASSERT_TRUE(first->get_f64(0, ZERO_KEY_LOSS_SCALE, &scale).ok());
      ASSERT_TRUE(second->set_f64(0, ZERO_KEY_LOSS_SCALE, scale).ok());
      for (int32_t key = ZERO_KEY_STEP_COUNT; key <= ZERO_KEY_OVERFLOW_COUNT; ++key) {
        ASSERT_TRUE(second->set_i64(key, scalar(*first, key)).ok());
      }
      const auto unbroken = make_plain(group, config, DType::f32);
      for (size_t i = 0; i < stop; ++i) (void)step_with(*unbroken, rows[i] ? kInfinity : 1.0F, DType::f32);
      for (size_t i = stop; i < std::size(rows); ++i) {
        const zero_step_result a = step_with(*second, rows[i] ? kInfinity : 1.0F, DType::f32);
        const zero_step_result b = step_with(*unbroken, rows[i] ? kInfinity : 1.0F, DType::f32);
        EXPECT_EQ(a.loss_scale, b.loss_scale) << stop << " " << i;
        EXPECT_EQ(a.step, b.step);
        EXPECT_EQ(a.skipped_total, b.skipped_total);
      }
    }
  });
}

TEST(LossScale, ThatDiffersBetweenRanksIsAMismatch) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_plain(group, dynamic_config({64, 0, 0, 0, 0, 0, 0}, 1), DType::f32);
    ASSERT_TRUE(optimizer->set_f64(0, ZERO_KEY_LOSS_SCALE, group->rank() == 0 ? 64 : 32).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_MISMATCH);
  });
}

struct BadValue {
  int32_t key;
  double value;
};

TEST(LossScale, RefusesValuesThatCannotBeScalesWithTheReason) {
  const BadValue values[] = {
      {ZERO_KEY_LOSS_SCALE, 0},          {ZERO_KEY_LOSS_SCALE, -1},          {ZERO_KEY_LOSS_SCALE, kInfinity},
      {ZERO_KEY_LOSS_SCALE, -kInfinity}, {ZERO_KEY_LOSS_SCALE, kNan},        {ZERO_KEY_LOSS_SCALE, 0x1p101},
      {ZERO_KEY_LOSS_SCALE_MIN, 0},      {ZERO_KEY_LOSS_SCALE_MIN, kNan},    {ZERO_KEY_LOSS_SCALE_MAX, kInfinity},
      {ZERO_KEY_LOSS_SCALE_BACKOFF, 0},  {ZERO_KEY_LOSS_SCALE_BACKOFF, 1},   {ZERO_KEY_LOSS_SCALE_BACKOFF, kNan},
      {ZERO_KEY_LOSS_SCALE_GROWTH, 0.5}, {ZERO_KEY_LOSS_SCALE_GROWTH, kNan}, {ZERO_KEY_LOSS_SCALE_GROWTH, kInfinity}};
  for (const BadValue &bad : values) {
    Config config;
    const Status status = config.set_f64(bad.key, bad.value);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT) << bad.key << " " << bad.value;
    EXPECT_TRUE(contains(status, "LOSS_SCALE")) << status.text();
  }
  for (const int32_t key : {ZERO_KEY_LOSS_SCALE_WINDOW, ZERO_KEY_LOSS_SCALE_HYSTERESIS}) {
    Config config;
    EXPECT_EQ(config.set_i64(key, 0).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(config.set_i64(key, -1).code(), ZERO_E_INVALID_ARGUMENT);
  }
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_plain(group, dynamic_config({64, 0, 0, 0, 0, 2, 128}, 0), DType::f32);
    for (const double value : {0.0, 1.0, 129.0, -64.0, kNan, static_cast<double>(kInfinity)}) {
      EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_LOSS_SCALE, value).code(), ZERO_E_INVALID_ARGUMENT) << value;
    }
    double scale = 0;
    EXPECT_TRUE(optimizer->get_f64(0, ZERO_KEY_LOSS_SCALE, &scale).ok());
    EXPECT_EQ(scale, 64);
  });
}

Status create_with(const Config &config) {
  Status status;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    status = Optimizer::create(group, config, &optimizer);
  });
  return status;
}

TEST(LossScale, RefusesADynamicScaleThatCannotWork) {
  Config config = dynamic_config({}, 1);
  ASSERT_TRUE(config.set_i64(ZERO_KEY_NONFINITE, ZERO_NONFINITE_PROPAGATE).ok());
  Status status = create_with(config);
  EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(status, "ZERO_NONFINITE_SKIP")) << status.text();
  status = create_with(dynamic_config({1024, 0, 0, 0, 0, 0, 512}, 1));
  EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(status, "ZERO_KEY_LOSS_SCALE_MIN and _MAX")) << status.text();
  EXPECT_EQ(create_with(dynamic_config({64, 0, 0, 0, 0, 512, 32}, 1)).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(LossScale, BoundsThatCrossAreRefusedAlsoForAStaticScale) {
  Config config;
  ASSERT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE_MIN, 100).ok() && config.set_f64(ZERO_KEY_LOSS_SCALE_MAX, 10).ok());
  const Status status = create_with(config);
  EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_STREQ(status.text(), "ZERO_KEY_LOSS_SCALE_MIN is 100, but must not be above ZERO_KEY_LOSS_SCALE_MAX, which is 10");
}

}  // namespace
}  // namespace zero::test::loss_scale_test
