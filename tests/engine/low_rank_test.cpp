/// @file Gradients that travel as factors of low rank: the sums of a plain program, nothing lost, nothing kept of a skipped step, the same
/// bits in every manner.
#include "kernels/low_rank.h"
#include "group/collectives.h"
#include "tests/engine/low_rank_rule.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::low_rank_test {
namespace {

Model plain_model(int64_t ranks) {
  Model model = low_rank_model(ranks, 1);
  model.recipe.grad_code = ZERO_CODE_NONE;
  model.recipe.residual = false;
  model.recipe.keys.clear();
  return model;
}

std::vector<float> params_of(Optimizer &optimizer, const Model &model) { return read_slot(optimizer, model, ZERO_SLOT_PARAM); }

double largest_difference(const std::vector<float> &params, const TensorValues &expected) {
  double largest = 0;
  size_t i = 0;
  for (const std::vector<double> &tensor : expected) {
    for (const double value : tensor) largest = std::max(largest, std::abs(params[i++] - value));
  }
  EXPECT_EQ(i, params.size());
  return std::isfinite(largest) ? largest : std::numeric_limits<double>::infinity();
}

TEST(LowRank, AppliesTheSumsOfAPlainProgram) {
  for (const int64_t ranks : {2, 3, 4, 8}) {
    for (const int64_t rank : {1, 2, 4}) {
      const Model model = low_rank_model(ranks, rank);
      LowRankRule rule(model, rank);
      std::vector<TensorValues> expected;
      for (int64_t step = 0; step < 3; ++step) {
        rule.step(step);
        expected.push_back(rule.params());
      }
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = (ranks + rank) % 4;
        manner.bucket_nbytes = 16384;
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        for (int64_t step = 0; step < 3; ++step) {
          (void)train_step(*optimizer, model, manner, step);
          EXPECT_LE(largest_difference(params_of(*optimizer, model), expected[static_cast<size_t>(step)]), 1e-4)
              << ranks << " ranks, factors of rank " << rank << ", step " << step;
        }
        expect_same_on_all_ranks(*optimizer);
      });
    }
  }
}

/// A step in full sends all that waited, so that parameters are those of the sum of all gradients, to roundings of fp32.
TEST(LowRank, LosesNothingInManySteps) {
  static const int64_t kSteps = few_tests() ? 100 : 300;
  for (const int64_t rank : {1, 4}) {
    Model model = low_rank_model(4, rank);
    model.recipe.flush_period = kSteps;
    const auto gradients_of = [](int64_t step) { return step % 17; };
    TensorValues expected = first_values_of(model);
    for (int64_t id = 0; id < model.tensors(); ++id) {
      std::vector<double> &values = expected[static_cast<size_t>(id)];
      std::vector<double> sum(values.size());
      for (int64_t step = 0; step < kSteps; ++step) add_gradients(model, gradients_of(step), id, sum);
      for (size_t k = 0; k < sum.size(); ++k) values[k] -= sum[k] / static_cast<double>(model.ranks);
    }
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
      for (int64_t step = 0; step + 1 < kSteps; ++step) (void)train_step(*optimizer, model, Manner{}, gradients_of(step));
      EXPECT_GT(largest_difference(params_of(*optimizer, model), expected), 0.1);
      (void)train_step(*optimizer, model, Manner{}, gradients_of(kSteps - 1));
      EXPECT_LE(largest_difference(params_of(*optimizer, model), expected), 1e-5 * kSteps) << rank;
      // Nothing waits any more: a gradient of zero changes nothing but by its own.
      Model zero = model;
      zero.recipe.unfilled_every = 1;
      const std::vector<float> before = params_of(*optimizer, model);
      (void)train_step(*optimizer, zero, Manner{}, 1);
      EXPECT_EQ(differing(params_of(*optimizer, model), before), 0);
    });
  }
}

/// All ranks' matrices have the columns of `rank` vectors in common.
float part_of_few(int64_t seed, int64_t rank, int64_t ranks, int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t k = 0; k < ranks; ++k) {
    sum += value_at(static_cast<uint64_t>(seed), static_cast<uint64_t>(k), row) *
           value_at(static_cast<uint64_t>(seed), static_cast<uint64_t>(1000 + 10 * k + rank), column);
  }
  return sum;
}

/// Also after a step whose gradients were zero, and with fewer than the factors have room for.
TEST(LowRank, SendsWhatHasLowRankToRounding) {
  for (const int64_t given : {1, 3, 4}) {
    Model model = low_rank_model(2, 4);
    model.counts = {64 * 48, 100 * 60};
    model.rows = {64, 100};
    TensorValues expected = first_values_of(model);
    for (int64_t step = 1; step < 4; ++step) {
      for (size_t id = 0; id < 2; ++id) {
        const int64_t columns = model.counts[id] / model.rows[id];
        for (size_t k = 0; k < expected[id].size(); ++k) {
          const auto at = static_cast<int64_t>(k);
          for (int64_t rank = 0; rank < 2; ++rank)
            expected[id][k] -= static_cast<double>(part_of_few(step, rank, given, at / columns, at % columns)) / 2;
        }
      }
    }
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
      for (int64_t step = 0; step < 4; ++step) {
        for (int64_t id = 0; id < 2; ++id) {
          const int64_t count = model.counts[static_cast<size_t>(id)];
          const int64_t columns = count / model.rows[static_cast<size_t>(id)];
          std::vector<float> gradient(static_cast<size_t>(count));
          for (int64_t k = 0; k < count && step > 0; ++k)
            gradient[static_cast<size_t>(k)] = part_of_few(step, group->rank(), given, k / columns, k % columns);
          expect_ok(optimizer->grad_ready(id, gradient.data(), 0, count), "grad_ready");
        }
        expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
      }
      EXPECT_LE(largest_difference(params_of(*optimizer, model), expected), 1e-4) << given;
    });
  }
}

TEST(LowRank, SendsVectorsAndSmallMatricesInFull) {
  const Model coded = low_rank_model(4, 2);
  const Model plain = plain_model(4);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> with = begun_optimizer(group, coded, Manner{});
    const std::shared_ptr<Optimizer> without = begun_optimizer(group, plain, Manner{});
    for (int64_t step = 0; step < 3; ++step) {
      (void)train_step(*with, coded, Manner{}, step);
      (void)train_step(*without, plain, Manner{}, step);
    }
    const std::vector<float> a = params_of(*with, coded);
    const std::vector<float> b = params_of(*without, plain);
    auto begin = std::ptrdiff_t{0};
    for (int64_t id = 0; id < coded.tensors(); ++id) {
      const std::ptrdiff_t end = begin + coded.counts[static_cast<size_t>(id)];
      const int64_t differ = differing(std::vector<float>(a.begin() + begin, a.begin() + end), {b.begin() + begin, b.begin() + end});
      EXPECT_EQ(differ > 0, is_factored(coded, id, 2)) << "tensor " << id;
      begin = end;
    }
  });
}

TEST(LowRank, BeginsAfterAsManyStepsAsTheKeySays) {
  constexpr int64_t kAfter = 3;
  Model coded = low_rank_model(4, 2);
  coded.recipe.keys.emplace_back(ZERO_KEY_CODE_AFTER, kAfter);
  const Model plain = plain_model(4);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> with = begun_optimizer(group, coded, Manner{});
    const std::shared_ptr<Optimizer> without = begun_optimizer(group, plain, Manner{});
    for (int64_t step = 0; step < kAfter + 2; ++step) {
      (void)train_step(*with, coded, Manner{}, step);
      (void)train_step(*without, plain, Manner{}, step);
      EXPECT_EQ(differing(params_of(*with, coded), params_of(*without, plain)) == 0, step < kAfter) << step;
    }
  });
}

TEST(LowRank, HasTheSameBitsInEveryManner) {
  const int64_t manners = full_tests() ? 24 : few_tests() ? 3 : 8;
  for (const int64_t ranks : {2, 3, 4, 8}) {
    Model model = low_rank_model(ranks, ranks == 8 ? 1 : 3);
    model.steps = 6;
    model.algorithm = ranks == 3 ? "muon" : "adamw";
    model.hyper.front() = {ZERO_KEY_LR, 0.01};
    model.recipe.overflow_step = 4;
    model.recipe.frozen_every = 5;
    model.recipe.tied = true;
    model.counts.push_back(model.counts.front());
    model.rows.push_back(model.rows.front());
    if (ranks == 8) model.recipe.dtype = DType::bf16;
    if (ranks == 8) model.recipe.clip_norm = 0.5;
    if (ranks == 4) model.recipe.micro_steps = {ZERO_MICRO_STEP_REDUCE, ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_LAST};
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      EXPECT_EQ(expect_same_in_every_manner(group, model, static_cast<uint64_t>(ranks * 100), manners).skipped, 1);
    });
  }
}

/// A run in which a step is skipped goes on as one that never made it: residuals and factors stay.
TEST(LowRank, KeepsNothingOfASkippedStep) { expect_skipped_steps_leave_nothing(low_rank_model(4, 3), "factors", 4); }

TEST(LowRank, FollowsTheLossScale) { expect_loss_scale_followed(low_rank_model(4, 3), "factors"); }

/// One element spoils its matrix and no other tensor, and what waits is as finite as before.
TEST(LowRank, PassesNonFiniteGradientsOn) {
  Model model = low_rank_model(2, 2);
  model.counts = {64 * 48, 17, 40 * 30};
  model.rows = {64, 0, 40};
  model.recipe.keys.emplace_back(ZERO_KEY_NONFINITE, ZERO_NONFINITE_PROPAGATE);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
      for (int64_t id = 0; id < model.tensors(); ++id) {
        std::vector<float> gradient(static_cast<size_t>(model.counts[static_cast<size_t>(id)]), 0.5F);
        if (id == 0 && group->rank() == 1) gradient[77] = bad;
        expect_ok(optimizer->grad_ready(id, gradient.data(), 0, std::ssize(gradient)), "grad_ready");
      }
      expect_ok(run_task(*optimizer, optimizer->step(nullptr)), "step");
      const std::vector<float> params = params_of(*optimizer, model);
      for (size_t i = 0; i < params.size(); ++i) ASSERT_EQ(std::isfinite(params[i]), i >= 64 * 48) << i;
    }
  });
}

TEST(LowRank, DropsLossesAndColumnsThatAreNotFinite) {
  constexpr kernels::LowRank kSizes{2, 3, 1};
  const std::vector<float> matrix = {1, 2, std::numeric_limits<float>::infinity(), 4, 5, 6};
  const std::vector<float> p = {1, 0};
  const std::vector<float> q = {1, 1, 1};
  std::vector<float> lost(6);
  kernels::low_rank_loss(kSizes, lost.data(), matrix.data(), p.data(), q.data());
  EXPECT_EQ(lost, (std::vector<float>{0, 1, 0, 4, 5, 6}));
  std::vector<float> columns = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> newest = {0, 0, std::numeric_limits<float>::quiet_NaN(), 1, 3, 4, 0.03F, 0.04F};
  kernels::keep_columns(columns.data(), newest.data(), 2, 4);
  EXPECT_EQ(columns, (std::vector<float>{1, 2, 3, 4, 0.375F, 0.5F, 0.03F * 16, 0.04F * 16}));
}

TEST(LowRank, MakesColumnsOrthonormalAndDependentOnesZero) {
  constexpr int64_t kCount = 37;
  std::vector<float> columns(5 * kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    for (const int64_t r : {0, 1, 3}) columns[static_cast<size_t>(r * kCount + i)] = value_at(1, static_cast<uint64_t>(r), i);
    columns[static_cast<size_t>(2 * kCount + i)] = 4 * columns[static_cast<size_t>(i)];
  }
  std::vector<double> workspace(kCount);
  kernels::orthonormalise(columns.data(), kCount, 5, workspace.data());
  for (int64_t a = 0; a < 5; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double product = 0;
      for (int64_t i = 0; i < kCount; ++i)
        product += static_cast<double>(columns[static_cast<size_t>(a * kCount + i)]) * columns[static_cast<size_t>(b * kCount + i)];
      EXPECT_NEAR(product, a == b && a != 2 && a != 4 ? 1 : 0, 1e-6) << a << " " << b;
    }
  }
}

TEST(LowRank, SendsTheBytesOfTheFormula) {
  for (const int64_t ranks : {2, 4}) {
    for (const int64_t rank : {2, 4}) {
      Model model = low_rank_model(ranks, rank);
      model.counts = {64 * 48, 512};
      model.rows = {64, 0};
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = 3;
        manner.norm = false;
        const auto sent = [&](Optimizer &optimizer) {
          return optimizer.traffic(OperationKind::reduce_scatter).sent_nbytes + optimizer.traffic(OperationKind::all_gather).sent_nbytes;
        };
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        const int64_t before = sent(*optimizer);
        (void)train_step(*optimizer, model, manner, 0);
        const int64_t expected = 2 * (ranks - 1) * 4 * (rank * (64 + 48) + 512) / ranks;
        EXPECT_EQ(sent(*optimizer) - before, expected);
        for (const std::string &told :
             {"factors of rank " + std::to_string(rank), "this rank sends at most " + std::to_string(expected) + " bytes"})
          EXPECT_NE(optimizer->describe().find(told), std::string::npos) << optimizer->describe();
      });
    }
  }
}

TEST(LowRank, TakesTheMemoryOfTheFormula) {
  Model model = low_rank_model(2, 4);
  model.counts = {200 * 150, 3000, 90 * 80};
  model.rows = {200, 0, 90};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
    (void)train_step(*optimizer, model, Manner{}, 0);
    MemoryUse use{};
    expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &use), "memory");
    EXPECT_LE(use.peak_nbytes, use.formula_nbytes + use.constant_nbytes);
    const int64_t states = 8 * (200 * 150 + 90 * 80) + 8 * 4 * (150 + 80);
    const int64_t packed = 4 * (4 * (200 + 150 + 90 + 80) + 3000);
    EXPECT_NEAR(static_cast<double>(use.peak_nbytes), static_cast<double>(states + packed + 8 * 200), 4096);
  });
}

TEST(LowRank, IsRefusedByNameWhereItDoesNotWork) {
  using Keys = std::vector<std::pair<int32_t, int64_t>>;
  const std::pair<int32_t, int64_t> code{ZERO_KEY_GRAD_CODE, ZERO_CODE_LOW_RANK};
  const std::pair<int32_t, int64_t> residual{ZERO_KEY_RESIDUAL, ZERO_RESIDUAL_F32};
  const std::pair<int32_t, int64_t> ones{ZERO_KEY_REPLICA_RANKS, 1};
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    expect_refused(group, Keys{code, residual, {ZERO_KEY_REPLICA_RANKS, 2}}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_GRAD_CODE is ZERO_CODE_LOW_RANK and ZERO_KEY_REPLICA_RANKS makes replicas of 2 ranks");
    expect_refused(group, Keys{code, residual}, ZERO_E_UNSUPPORTED, "ZERO_KEY_REPLICA_RANKS makes replicas of 4 ranks");
    expect_refused(group, Keys{code, ones}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_GRAD_CODE is ZERO_CODE_LOW_RANK and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_NONE");
    expect_refused(group, Keys{ones, {ZERO_KEY_SYNC_PERIOD, 2}, {ZERO_KEY_SYNC_CODE, ZERO_CODE_LOW_RANK}}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_SYNC_CODE is ZERO_CODE_LOW_RANK");
    expect_refused(group, Keys{{ZERO_KEY_STAGE, 1}, {ZERO_KEY_GATHER_CODE, ZERO_CODE_LOW_RANK}}, ZERO_E_UNSUPPORTED,
                   "ZERO_KEY_GATHER_CODE is ZERO_CODE_LOW_RANK");
    expect_refused(group, Keys{ones, {ZERO_KEY_CODE_RANK, 3}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_CODE_RANK is 3, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_NONE");
    expect_refused(group, Keys{code, residual, ones, {ZERO_KEY_CODE_TOP, 8}}, ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_CODE_TOP is 8");
    expect_refused(group, Keys{code, residual, ones, {ZERO_KEY_SYNC_PERIOD, 2}}, ZERO_E_INVALID_ARGUMENT,
                   "ZERO_KEY_GRAD_CODE is ZERO_CODE_LOW_RANK, but no gradients travel between replicas");
    expect_refused(group, Keys{code, residual, ones, {ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED}}, ZERO_E_UNSUPPORTED,
                   "would be sent and not applied");
    Config momentum;
    for (const auto &[key, value] : {code, residual, ones}) expect_ok(momentum.set_i64(key, value), "set_i64");
    expect_ok(momentum.set_f64(ZERO_KEY_CODE_MOMENTUM, 0.5), "set_f64");
    std::shared_ptr<Optimizer> optimizer;
    EXPECT_TRUE(contains(Optimizer::create(group, momentum, &optimizer), "ZERO_KEY_CODE_MOMENTUM is 0.5, but has no effect"));
  });
}

TEST(LowRank, MustHaveTheSameRankOnAllRanks) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Config config = make_config(low_rank_model(2, 2 + group->rank()), Manner{});
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, config, &optimizer), "create");
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_TRUE(contains(status, "ZERO_KEY_CODE_RANK")) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::low_rank_test
