/// @file A non-finite element anywhere: every rank skips the same step and keeps every bit.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <limits>

namespace zero::test::nonfinite_test {
namespace {

constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};

struct Case {
  int64_t culprit;
  int64_t element;
  float value;
};

std::vector<Case> all_cases(const Model &model, int64_t elements) {
  std::vector<Case> cases;
  int64_t number = 0;
  Every every(7);
  for (int64_t culprit = 0; culprit < model.ranks; ++culprit) {
    for (int64_t element = 0; element < elements; ++element) {
      for (const float value : kBad) {
        // By default the elements at both ends of each tensor and of each line, and every 37th case of the others; one in seven of those
        // in slow builds.
        const bool edge = element % 256 < 1 || element % 256 > 254 || element >= elements - 6;
        if ((full_tests() || edge || number++ % 37 == 0) && every.next()) cases.push_back({culprit, element, value});
      }
    }
  }
  return cases;
}

/// Gives ones, one of them replaced on the culprit.
void give(Optimizer &optimizer, const Model &model, const Case &bad) {
  int64_t begin = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<float> grad(static_cast<size_t>(count), 1.0F);
    const bool here = bad.element >= begin && bad.element < begin + count;
    if (here && optimizer.group()->rank() == bad.culprit) grad[static_cast<size_t>(bad.element - begin)] = bad.value;
    begin += count;
    const std::vector<std::byte> bytes = encode(grad, model.grad_dtype(id));
    ASSERT_TRUE(optimizer.grad_ready(id, bytes.data(), 0, count).ok());
  }
}

struct Sum {
  int64_t cases = 0;
  std::atomic<int64_t> wrong{0};
};

/// Shards of a line each, the last with a tail; a small tensor behind.
void run_cases(const Model &model, const Manner &manner, Sum &sum) {
  const std::vector<Case> cases = all_cases(model, model.counts[0] + model.counts[1]);
  sum.cases += static_cast<int64_t>(cases.size());
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_step(*optimizer, model, manner, 0);
    const std::vector<std::byte> before = read_slots(*optimizer, model);
    int64_t skipped = 0;
    for (const Case &bad : cases) {
      if (!model.recipe.micro_steps.empty()) {
        for (const int32_t kind : model.recipe.micro_steps) {
          ASSERT_TRUE(optimizer->queue()->run(optimizer->micro_step(kind)).ok());
          give(*optimizer, model, kind == model.recipe.micro_steps[static_cast<size_t>(skipped) % 2] ? bad : Case{-1, 0, 0});
        }
      } else {
        give(*optimizer, model, bad);
      }
      zero_step_result result{};
      ASSERT_TRUE(optimizer->queue()->run(optimizer->step(&result)).ok());
      ++skipped;
      const bool as_promised = result.skipped == 1 && result.skipped_total == skipped && result.step == 1;
      if (!as_promised) ++sum.wrong;
      EXPECT_TRUE(as_promised) << "rank " << bad.culprit << " element " << bad.element << " " << bad.value << "\n"
                               << model.text() << manner.text();
      if (!as_promised) return;
      // Every slot after some cases, and at the end; what one of them broke, the next does not mend.
      const bool looks = full_tests() ? skipped % 64 == 0 : skipped % 16 == 0;
      if (!looks && skipped != static_cast<int64_t>(cases.size())) continue;
      const bool unchanged = read_slots(*optimizer, model) == before;
      if (!unchanged) ++sum.wrong;
      EXPECT_TRUE(unchanged) << model.text() << manner.text();
      if (!unchanged) return;
    }
    // The run goes on.
    const zero_step_result result = train_step(*optimizer, model, manner, 1);
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(result.step, 2);
  });
}

Model model_of(DType dtype, int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {256 * (ranks - 1) + 20, 5};
  model.recipe.dtype = dtype;
  model.recipe.average = true;
  if (dtype == DType::bf16) model.recipe.master = ZERO_MASTER_REMAINDER;
  return model;
}

TEST(NonFinite, AnElementAnywhereSkipsTheStepOnAllRanksAndChangesNoBit) {
  Sum sum;
  for (int64_t ranks = 1; ranks <= 4; ++ranks) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        Manner manner;
        manner.stage = stage;
        manner.bucket_nbytes = 1024;
        manner.overlap = (ranks + stage) % 2 == 1;
        run_cases(model_of(dtype, ranks), manner, sum);
      }
    }
  }
  EXPECT_EQ(sum.wrong, 0);
  std::printf("%lld non-finite elements, %lld not skipped alike or with changed slots\n", static_cast<long long>(sum.cases),
              static_cast<long long>(sum.wrong));
}

TEST(NonFinite, AnElementInAnyMicroStepSkipsTheStepToo) {
  Sum sum;
  for (int64_t ranks = 1; ranks <= 3; ++ranks) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const std::vector<int32_t> &kinds : {std::vector<int32_t>{ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST},
                                                std::vector<int32_t>{ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LAST}}) {
        for (const bool in_f32 : {false, true}) {
          Model model = model_of(in_f32 ? DType::bf16 : DType::f32, ranks);
          model.recipe.micro_steps = kinds;
          model.recipe.accumulates_in_f32 = in_f32;
          Manner manner;
          manner.stage = stage;
          run_cases(model, manner, sum);
        }
      }
    }
  }
  EXPECT_EQ(sum.wrong, 0);
  std::printf("%lld non-finite elements in micro-steps, %lld not skipped alike or with changed slots\n", static_cast<long long>(sum.cases),
              static_cast<long long>(sum.wrong));
}

/// States of 8 bits and stochastic rounding are left alone as well.
TEST(NonFinite, SkippedStepsLeaveNarrowStatesAlone) {
  Sum sum;
  for (const int64_t ranks : {1, 2, 3}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      Model model = model_of(DType::bf16, ranks);
      model.counts[0] += 256;
      model.recipe.master = ZERO_MASTER_NONE;
      model.recipe.stochastic = true;
      model.recipe.first_moment = DType::f8e4m3;
      model.recipe.second_moment = DType::f8ue5m3;
      Manner manner;
      manner.stage = stage;
      run_cases(model, manner, sum);
    }
  }
  EXPECT_EQ(sum.wrong, 0);
  std::printf("%lld non-finite elements with narrow states, %lld wrong\n", static_cast<long long>(sum.cases),
              static_cast<long long>(sum.wrong));
}

}  // namespace
}  // namespace zero::test::nonfinite_test
