/// @file Clipping by norm and by value, and the norm itself, against float64.
#include "tests/engine/bounded_training.h"
#include "tests/engine/rank_worlds.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace zero::test::clipping_test {
namespace {

class ClippingStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, ClippingStages, testing::Range<int64_t>(0, 4));

/// Trains and compares the kept values with bounds that follow every rounding.
int64_t follow(const Model &model, const Manner &manner) {
  int64_t values = 0;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const Outcome outcome = train(group, model, manner);
    if (group->rank() != 0) return;
    std::vector<BoundedTensor> tensors;
    for (int64_t id = 0; id < model.tensors(); ++id) tensors.emplace_back(model, id);
    for (int64_t step = 0; step < model.steps; ++step) {
      const double norm = gradient_norm(model, step);
      expect_norm(outcome.norms[static_cast<size_t>(step)], norm);
      for (int64_t id = 0; id < model.tensors(); ++id) {
        BoundedTensor &tensor = tensors[static_cast<size_t>(id)];
        std::vector<Bounds> gradients;
        for (int64_t i = 0; i < tensor.count(); ++i)
          gradients.push_back(clipped_gradient(model, norm, reduced_gradient(model, step, id, i)));
        tensor.update(gradients);
      }
    }
    const std::byte *slots = outcome.slots.data();
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const int64_t count = model.counts[static_cast<size_t>(id)];
      const DType dtype = model.dtype(id);
      // The parameter, then the master where there is one, then the buffer of momentum.
      const std::vector<float> params = decode(slots, dtype, count);
      slots += count * (dtype_nbytes(dtype) + (dtype != DType::f32 ? 4 : 0) + (model.momentum != 0 ? 4 : 0));
      const std::vector<Bounds> all = tensors[static_cast<size_t>(id)].params();
      for (int64_t i = 0; i < count; ++i, ++values) {
        const Bounds bounds = all[static_cast<size_t>(i)];
        EXPECT_TRUE(bounds.hold(params[static_cast<size_t>(i)]))
            << params[static_cast<size_t>(i)] << " is not in " << bounds.low << " .. " << bounds.high << "\n"
            << model.text() << manner.text();
      }
    }
  });
  return values;
}

Model model_of(DType dtype, int64_t ranks, double loss_scale) {
  Model model;
  model.ranks = ranks;
  model.counts = {700, 31, 0, 300};
  model.algorithm = "sgd";
  model.momentum = 0.9;
  model.steps = 10;
  model.recipe.dtype = dtype;
  model.recipe.loss_scale = loss_scale;
  return model;
}

TEST_P(ClippingStages, ClippingByNormAndByValueFollowFloat64) {
  int64_t values = 0;
  Every every(7);
  for (int64_t ranks = 1; ranks <= 4; ++ranks) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const double loss_scale : {1.0, 1000.0}) {
        // Norms of these gradients are about 5 for one rank and 2.5 for four: clipped always, sometimes, never; or by value.
        for (const auto &[norm, value] : {std::pair{0.5, 0.0}, {2.6, 0.0}, {100.0, 0.0}, {0.0, 0.01}, {0.0, 10.0}}) {
          if (!every.next()) continue;
          Model model = model_of(dtype, ranks, loss_scale);
          model.recipe.clip_norm = norm;
          model.recipe.clip_value = value;
          Manner manner;
          manner.stage = GetParam();
          manner.bucket_nbytes = 1024;
          values += follow(model, manner);
        }
      }
    }
  }
  std::printf("stage %lld: %lld parameters within bounds\n", static_cast<long long>(GetParam()), static_cast<long long>(values));
}

/// 0 is no limit, and so would this one be in fp32.
TEST_P(ClippingStages, ALimitBelowTheLeastFp32Clips) {
  Model model = model_of(DType::f32, 2, 1);
  model.recipe.clip_value = 1e-46;
  Manner manner;
  manner.stage = GetParam();
  EXPECT_GT(follow(model, manner), 0);
}

TEST(Clipping, InBothWaysAtOnceIsRefused) {
  Config config;
  ASSERT_TRUE(config.set_f64(ZERO_KEY_CLIP_NORM, 1).ok());
  ASSERT_TRUE(config.set_f64(ZERO_KEY_CLIP_VALUE, 1).ok());
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    const Status status = Optimizer::create(group, config, &optimizer);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_NE(std::string(status.text()).find("ZERO_KEY_CLIP_VALUE"), std::string::npos) << status.text();
  });
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Config().set_f64(ZERO_KEY_CLIP_NORM, bad).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(Config().set_f64(ZERO_KEY_CLIP_VALUE, bad).code(), ZERO_E_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace zero::test::clipping_test
