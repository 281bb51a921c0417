/// @file Gradients that are given by rows: the bits of whole gradients with the same rows, which the test makes itself, and what travels.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/row_gradients.h"
#include "tests/engine/training.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace zero::test::rows_test {
namespace {

/// What a training ends with on one rank: bits of slots and norms.
struct End {
  std::vector<std::byte> slots;
  std::vector<double> norms;
  int64_t reduced_nbytes = 0;
  int64_t gathered_nbytes = 0;
};

End train_by_rows(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  End end;
  const auto optimizer = begun_optimizer(group, model, manner);
  if (optimizer == nullptr) return end;
  int64_t number = 0;
  for (int64_t at = 0; at < model.steps; ++at) {
    give_step_by_rows(*optimizer, model, &number);
    zero_step_result result{};
    end_step(*optimizer, manner.splits, &result);
    end.norms.push_back(result.grad_norm);
  }
  end.slots = read_slots(*optimizer, model);
  end.reduced_nbytes = optimizer->traffic(OperationKind::reduce_scatter).sent_nbytes;
  end.gathered_nbytes = optimizer->traffic(OperationKind::all_gather).sent_nbytes;
  return end;
}

std::vector<End> train_world(const Model &model, const Manner &manner, int64_t per_host = 0) {
  std::vector<End> ends(static_cast<size_t>(model.ranks));
  run_hosts(model.ranks, per_host,
            [&](const std::shared_ptr<Group> &group) { ends[static_cast<size_t>(group->rank())] = train_by_rows(group, model, manner); });
  return ends;
}

void expect_bits_of_whole(Model model, Manner manner, int64_t per_host = 0) {
  model.by_rows = true;
  const std::vector<End> rows = train_world(model, manner, per_host);
  model.by_rows = false;
  const std::vector<End> whole = train_world(model, manner, per_host);
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    EXPECT_TRUE(rows[rank].slots == whole[rank].slots) << "rank " << rank << " " << model.text() << "\n" << manner.text();
    EXPECT_EQ(rows[rank].norms, whole[rank].norms) << "rank " << rank << " " << model.text() << "\n" << manner.text();
  }
}

/// Rows shorter and longer than a line, tables of less than a line, of one row, of fewer rows than ranks, with and without a tail that
/// small tensors share.
void add_table(Model &model, std::mt19937_64 &random) {
  constexpr int64_t kShapes[][2] = {{40, 64}, {700, 1}, {100, 7}, {3, 300}, {1, 1000}, {9, 5}, {257, 3}, {64, 256}, {2, 129}, {13, 83}};
  const auto &shape = kShapes[random() % std::size(kShapes)];
  model.rows.push_back(shape[0]);
  model.counts.push_back(shape[0] * shape[1]);
}

Model random_model(std::mt19937_64 &random) {
  constexpr const char *kAlgorithms[] = {"sgd", "adam", "adamw", "adagrad", "lion", "lamb", "muon"};
  Model model;
  model.seed = random();
  model.ranks = static_cast<int64_t>(random() % 4) + 1;
  model.algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
  if (model.algorithm == "sgd") model.momentum = 0.5;
  model.divisor = std::vector<int64_t>{ZERO_DIVISOR_RANKS, ZERO_DIVISOR_ONE, ZERO_DIVISOR_WEIGHTS}[random() % 3];
  model.recipe.dtype = std::vector<DType>{DType::f32, DType::f16, DType::bf16}[random() % 3];
  if (random() % 3 == 0) model.recipe.clip_norm = 0.5;
  model.recipe.accumulates_in_f32 = random() % 2 == 0;
  const std::vector<std::vector<int32_t>> kinds = {{}, {}, {1, 1}, {1, 0}, {2, 2}, {2, 1, 0}, {1, 2}};
  model.recipe.micro_steps = kinds[random() % kinds.size()];
  for (const int64_t small : {31, 0, 300}) {
    add_table(model, random);
    model.counts.push_back(small);
    model.rows.push_back(0);
  }
  // Also a table whose other name comes with rows of its own.
  if (random() % 3 == 0) {
    model.recipe.tied = true;
    model.counts.push_back(model.counts.front());
    model.rows.push_back(model.rows.front());
  }
  return model;
}

TEST(Rows, HaveTheBitsOfWholeGradientsInAllStages) {
  std::mt19937_64 random(11);
  const int64_t cases = full_tests() ? 1000 : few_tests() ? 20 : 60;
  for (int64_t number = 0; number < cases; ++number) {
    const Model model = random_model(random);
    Manner manner = random_manner(random(), model.ranks);
    manner.stage = number % 4;
    manner.source = ZERO_SOURCE_LOCAL;
    manner.splits = random() % 2 == 0;
    manner.replica_ranks = 0;
    const bool hosts = model.ranks == 4 && !manner.one_copy && random() % 2 == 0;
    expect_bits_of_whole(model, manner, hosts ? 2 : 0);
    ASSERT_FALSE(testing::Test::HasFailure()) << "case " << number;
  }
}

/// One gradient is not finite: all ranks skip the step, and the next one is as if it had not been.
TEST(Rows, NonFiniteOnesSkipTheStep) {
  for (const int64_t ranks : {1, 3}) {
    const Model model{.ranks = ranks, .counts = {640}, .rows = {10}, .by_rows = true};
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, {.stage = 2});
      const std::vector<std::byte> before = read_slots(*optimizer, model);
      std::vector<float> values(64, 1);
      values[5] = group->rank() == ranks - 1 ? INFINITY : 1;
      const int64_t row = 9;
      expect_ok(optimizer->grad_ready_rows(0, &row, values.data(), 1), "grad_ready_rows");
      zero_step_result result{};
      end_step(*optimizer, false, &result);
      EXPECT_EQ(result.skipped, 1);
      EXPECT_EQ(before, read_slots(*optimizer, model));
    });
  }
}

/// The reduced gradient of two micro-steps: row 0 is given as -0 in the first and not in the second, row 1 in both, row 2 in none.
std::vector<float> sums_of_zeros(const std::shared_ptr<Group> &group, int32_t kind, bool by_rows) {
  const Model model{.ranks = group->size(), .counts = {300}, .rows = {3}, .by_rows = by_rows};
  const auto optimizer = begun_optimizer(group, model, {.stage = 1});
  for (const int64_t first : {0, 1}) {
    expect_ok(run_task(*optimizer, optimizer->micro_step(kind)), "micro_step");
    Given given;
    for (int64_t row = first; row < 2; ++row) given.rows.push_back(row);
    given.values = encode(std::vector<float>(given.rows.size() * 100, -0.0f), DType::f32);
    if (by_rows) {
      expect_ok(optimizer->grad_ready_rows(0, given.rows.data(), given.values.data(), std::ssize(given.rows)), "grad_ready_rows");
    } else {
      expect_ok(optimizer->grad_ready(0, whole_of(model, 0, given).data(), 0, 300), "grad_ready");
    }
  }
  expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
  std::vector<float> sums(300);
  expect_ok(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_GRAD, 0, sums.data(), 300)), "read");
  expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
  return sums;
}

/// Rows that are not given are 0, not -0, as in whole gradients.
TEST(Rows, ZerosOfBothSignsAreThoseOfWholeGradients) {
  for (const int64_t ranks : {1, 2}) {
    for (const int32_t kind : {ZERO_MICRO_STEP_LOCAL, ZERO_MICRO_STEP_REDUCE}) {
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const std::vector<float> rows = sums_of_zeros(group, kind, true);
        const std::vector<float> whole = sums_of_zeros(group, kind, false);
        EXPECT_EQ(std::memcmp(rows.data(), whole.data(), rows.size() * sizeof(float)), 0) << "ranks " << ranks << " kind " << kind;
        EXPECT_FALSE(std::signbit(rows[0]));
        EXPECT_TRUE(std::signbit(rows[100]));
      });
    }
  }
}

/// One step of a large table of which each rank gives 10 rows; the bytes are those of reduce.
End train_large(const std::shared_ptr<Group> &group, int64_t stage, bool by_rows) {
  static const int64_t kRows = few_tests() ? 10'000 : 100'000;
  constexpr int64_t kWidth = 64;
  const Model model{.ranks = group->size(), .counts = {kRows * kWidth}, .rows = {kRows}, .by_rows = by_rows};
  const Manner manner{.stage = stage, .splits = true};
  const auto optimizer = begun_optimizer(group, model, manner);
  std::mt19937_64 random(static_cast<uint64_t>(group->rank()) + 5);
  Given given;
  for (int64_t i = 0; i < 10; ++i) given.rows.push_back(static_cast<int64_t>(random() % kRows));
  std::vector<float> values;
  for (int64_t i = 0; i < 10 * kWidth; ++i) values.push_back(value_at(static_cast<uint64_t>(group->rank()), 2, i));
  given.values = encode(values, DType::f32);
  const Traffic reduced = optimizer->traffic(OperationKind::reduce_scatter);
  const Traffic gathered = optimizer->traffic(OperationKind::all_gather);
  if (by_rows) {
    expect_ok(optimizer->grad_ready_rows(0, given.rows.data(), given.values.data(), 10), "grad_ready_rows");
  } else {
    expect_ok(optimizer->grad_ready(0, whole_of(model, 0, given).data(), 0, model.counts[0]), "grad_ready");
  }
  expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
  End end;
  end.reduced_nbytes = optimizer->traffic(OperationKind::reduce_scatter).sent_nbytes - reduced.sent_nbytes;
  end.gathered_nbytes = optimizer->traffic(OperationKind::all_gather).sent_nbytes - gathered.sent_nbytes;
  expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
  expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
  EXPECT_EQ(by_rows, optimizer->describe().find("by rows: gradients of 1 tensor") != std::string::npos);
  end.slots = read_slots(*optimizer, model);
  return end;
}

TEST(Rows, TenOfManyTravelAsTenRowsAndTheirNumbers) {
  constexpr int64_t kRanks = 4;
  constexpr double kTen = 10 * (64 * 4 + 8);
  for (int64_t stage = 0; stage < 4; stage += full_tests() ? 1 : 2) {
    std::vector<std::byte> whole;
    std::vector<std::byte> rows;
    std::mutex mutex;
    for (const bool by_rows : {true, false}) {
      run_world(kRanks, [&](const std::shared_ptr<Group> &group) {
        const End end = train_large(group, stage, by_rows);
        const std::lock_guard lock(mutex);
        if (group->rank() == 0) (by_rows ? rows : whole) = end.slots;
        if (!by_rows) {
          EXPECT_GT(static_cast<double>(end.reduced_nbytes), 100 * kTen);
          return;
        }
        EXPECT_LE(static_cast<double>(end.reduced_nbytes), 1.1 * kTen) << "stage " << stage;
        EXPECT_GT(end.reduced_nbytes, 0);
        // Sums of rows of all ranks, from their owners to all others.
        EXPECT_LE(static_cast<double>(end.gathered_nbytes), 1.1 * (kRanks - 1) * kRanks * kTen) << "stage " << stage;
      });
    }
    EXPECT_TRUE(rows == whole) << "stage " << stage;
  }
}

TEST(Rows, MisuseIsRefusedAndChangesNothing) {
  Model model{.ranks = 1, .counts = {40, 6}, .rows = {10, 0}, .by_rows = true};
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, {});
    const std::vector<float> values(8, 1);
    const std::vector<int64_t> rows = {3, 10};
    const auto give_rows = [&](int64_t id, int64_t count) { return optimizer->grad_ready_rows(id, rows.data(), values.data(), count); };
    Status status = give_rows(0, 2);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_STREQ(status.text(), "rows[1] is 10, but \"p0\" has 10 rows, numbered from 0");
    status = give_rows(1, 1);
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_STREQ(status.text(), "\"p1\" is not given by rows; set ZERO_KEY_ROWS to 1 in the config of zero_optimizer_add_param");
    EXPECT_EQ(give_rows(2, 1).code(), ZERO_E_INVALID_ARGUMENT);
    void *data = nullptr;
    int64_t accumulate = 0;
    expect_ok(optimizer->grad_acquire(0, &data, &accumulate), "grad_acquire");
    EXPECT_EQ(give_rows(0, 1).code(), ZERO_E_STATE);
    expect_ok(optimizer->grad_ready(0, nullptr, 0, 40), "grad_ready");
    EXPECT_EQ(give_rows(0, 1).code(), ZERO_E_STATE);
    zero_step_result result{};
    end_step(*optimizer, false, &result);
    expect_ok(give_rows(0, 1), "grad_ready_rows");
    EXPECT_EQ(give_rows(0, 1).code(), ZERO_E_STATE);
    EXPECT_EQ(optimizer->grad_ready(0, values.data(), 0, 4).code(), ZERO_E_STATE);
  });
}

Status added_with(const Config &config, int64_t ndim) {
  Status status;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, config, &optimizer), "create");
    Config param;
    EXPECT_TRUE(param.set_i64(ZERO_KEY_ROWS, 1).ok());
    const int64_t shape[] = {4, 100};
    int64_t id = 0;
    const Status added = optimizer->add_param(&param, "table", ZERO_DTYPE_F32, shape, ndim, &id);
    if (group->rank() == 0) status = added;
  });
  return status;
}

TEST(Rows, WhatDoesNotKnowThemIsRefusedWithBothNames) {
  const auto refused_with = [](int32_t key, int64_t value) {
    Config config;
    EXPECT_TRUE(config.set_i64(key, value).ok());
    const Status status = added_with(config, 2);
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(status, "ZERO_KEY_ROWS")) << status.text();
    return status;
  };
  EXPECT_TRUE(contains(refused_with(ZERO_KEY_REPLICA_RANKS, 1), "ZERO_KEY_REPLICA_RANKS"));
  EXPECT_EQ(added_with(Config(), 0).code(), ZERO_E_INVALID_ARGUMENT);
}

/// Ranks that differ learn it in seal.
TEST(Rows, RanksThatDifferLearnItInSeal) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Model model{.ranks = 2, .counts = {640}, .rows = {10}, .by_rows = group->rank() == 1};
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, make_config(model, {}), &optimizer), "create");
    Config param;
    EXPECT_TRUE(param.set_i64(ZERO_KEY_ROWS, group->rank()).ok());
    const int64_t shape[] = {10, 64};
    int64_t id = 0;
    expect_ok(optimizer->add_param(&param, "table", ZERO_DTYPE_F32, shape, 2, &id), "add_param");
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_TRUE(contains(status, "by rows")) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::rows_test
