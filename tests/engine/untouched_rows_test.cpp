/// @file Steps that leave rows untouched, against a plain program that updates whole tensors and keeps the old bits of these rows.
#include "tests/engine/dense_program.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/row_gradients.h"
#include "tests/engine/saved_runs.h"
#include "tests/engine/untouched.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace zero::test::untouched_rows_test {
namespace {

void expect_dense_bits(const Model &model, const Manner &manner, int64_t per_host) {
  Slots expected;
  std::vector<End> ends(static_cast<size_t>(model.ranks));
  run_hosts(model.ranks, per_host, [&](const std::shared_ptr<Group> &group) {
    ends[static_cast<size_t>(group->rank())] = train_both(group, model, manner, group->rank() == 0 ? &expected : nullptr);
  });
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const std::string place = " rank " + std::to_string(rank) + " " + model.text() + "\n" + manner.text();
    EXPECT_EQ(ends[rank].slots.size(), expected.size()) << place;
    for (const auto &[key, slot] : expected)
      EXPECT_TRUE(ends[rank].slots[key] == slot) << "tensor " << key.first << " slot " << key.second << place;
    for (int64_t id = 0; id < std::ssize(ends[rank].params); ++id) {
      EXPECT_TRUE(ends[rank].params[static_cast<size_t>(id)] == (expected[{holder(model, id), ZERO_SLOT_PARAM}]))
          << "acquired tensor " << id << place;
    }
  }
}

/// Rows around the length of a line; tables of less than a line, of one row, and with tails that small tensors share.
void add_table(Model &model, std::mt19937_64 &random) {
  constexpr int64_t kShapes[][2] = {{40, 64}, {700, 1}, {100, 3}, {3, 300}, {1, 1000}, {9, 5},   {4, 1000}, {5, 255},
                                    {5, 257}, {7, 256}, {1, 7},   {60, 3},  {2, 129},  {13, 83}, {255, 1}};
  const auto &shape = kShapes[random() % std::size(kShapes)];
  model.rows.push_back(shape[0]);
  model.counts.push_back(shape[0] * shape[1]);
}

Model random_model(std::mt19937_64 &random) {
  constexpr const char *kAlgorithms[] = {"sgd", "adam", "adamw", "adagrad", "lion"};
  const auto one_in = [&random](uint64_t n) { return random() % n == 0; };
  Model model;
  model.seed = random();
  model.ranks = static_cast<int64_t>(random() % 5) + 1;
  model.algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
  if (model.algorithm == "sgd") model.momentum = one_in(2) ? 0.5 : 0;
  model.divisor = static_cast<int64_t>(random() % 3);
  model.by_rows = true;
  Recipe &recipe = model.recipe;
  recipe.untouched = true;
  recipe.dtype = std::vector<DType>{DType::f32, DType::f16, DType::bf16}[random() % 3];
  recipe.master = static_cast<int64_t>(random() % (recipe.dtype == DType::bf16 ? 3 : 2));
  if (model.algorithm != "sgd" && one_in(3)) recipe.first_moment = DType::bf16;
  if (model.algorithm != "sgd" && one_in(3)) recipe.second_moment = DType::bf16;
  if (one_in(3)) recipe.clip_norm = 0.5;
  if (recipe.clip_norm == 0 && one_in(3)) recipe.clip_value = 0.01;
  recipe.average = one_in(2);
  recipe.accumulates_in_f32 = one_in(2);
  recipe.gather_below = one_in(3) ? 500 : 0;
  const std::vector<std::vector<int32_t>> kinds = {{}, {}, {}, {1, 1}, {1, 0}, {2, 2}, {2, 1, 0}, {1, 2}};
  recipe.micro_steps = kinds[random() % kinds.size()];
  for (const int64_t small : {31, 0, 300}) {
    add_table(model, random);
    model.counts.push_back(small);
    model.rows.push_back(0);
  }
  // Also a table whose other name comes with rows of its own.
  if (one_in(3)) {
    recipe.tied = true;
    model.counts.push_back(model.counts.front());
    model.rows.push_back(model.rows.front());
  }
  return model;
}

TEST(UntouchedRows, StepsHaveTheBitsOfADenseProgramThatSkipsThem) {
  std::mt19937_64 random(23);
  const int64_t cases = full_tests() ? 1000 : few_tests() ? 12 : 80;
  for (int64_t number = 0; number < cases; ++number) {
    const Model model = random_model(random);
    Manner manner = random_manner(random(), model.ranks);
    manner.stage = number % 4;
    manner.source = ZERO_SOURCE_LOCAL;
    manner.verify_every = random() % 3 == 0 ? 1 : 0;
    const bool hosts = model.ranks > 2 && !manner.one_copy && random() % 2 == 0;
    expect_dense_bits(model, manner, hosts ? 2 : 0);
    ASSERT_FALSE(testing::Test::HasFailure()) << "case " << number;
  }
}

/// A large table of which all ranks give the same 10 rows. Without decay an sgd that updates all rows has the same bits.
TEST(UntouchedRows, TenOfManyAreGatheredAsTenRowsAndTheirNumbers) {
  static const int64_t kRows = few_tests() ? 10'000 : 100'000;
  constexpr int64_t kWidth = 64;
  constexpr int64_t kRanks = 4;
  constexpr double kTen = 10 * (kWidth * 4 + 8);
  std::mt19937_64 random(5);
  std::vector<int64_t> rows;
  std::vector<float> values;
  for (int64_t i = 0; i < 10; ++i) rows.push_back(static_cast<int64_t>(random() % kRows));
  for (int64_t i = 0; i < 10 * kWidth; ++i) values.push_back(value_at(9, 2, i));
  for (const bool overlap : {false, true}) {
    for (const int64_t stage : full_tests() ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{1, 2}) {
      std::mutex mutex;
      int64_t gathered = 0;
      run_world(kRanks, [&](const std::shared_ptr<Group> &group) {
        Model model{.ranks = kRanks, .counts = {kRows * kWidth}, .algorithm = "sgd", .weight_decay = 0, .rows = {kRows}, .by_rows = true};
        model.recipe.untouched = true;
        const auto optimizer = begun_optimizer(group, model, {.stage = stage, .overlap = overlap});
        model.recipe.untouched = false;
        const auto dense = begun_optimizer(group, model, {.stage = stage});
        const auto sent = [&](OperationKind kind) { return optimizer->traffic(kind).sent_nbytes; };
        const int64_t reduced_before = sent(OperationKind::reduce_scatter);
        const int64_t gathered_before = sent(OperationKind::all_gather);
        for (Optimizer *each : {optimizer.get(), dense.get()}) {
          expect_ok(each->grad_ready_rows(0, rows.data(), values.data(), 10), "grad_ready_rows");
          expect_ok(run_task(*each, each->step(nullptr)), "step");
        }
        // In stages 1 and 2 it waits for the gather behind the step; in stage 3 it is the gather, of everything.
        const Entries early = stage < 3 ? acquired(*optimizer, model, 0) : Entries();
        {
          const std::lock_guard lock(mutex);
          gathered += sent(OperationKind::all_gather) - gathered_before;
        }
        EXPECT_TRUE((stage < 3 ? early : acquired(*optimizer, model, 0)) == acquired(*dense, model, 0)) << "stage " << stage;
        EXPECT_LE(static_cast<double>(sent(OperationKind::reduce_scatter) - reduced_before), 1.1 * kTen) << "stage " << stage;
        EXPECT_NE(optimizer->describe().find("untouched: rows that no rank gives"), std::string::npos);
      });
      EXPECT_LE(static_cast<double>(gathered), stage < 3 ? 1.1 * (kRanks - 1) * kTen : 0) << "stage " << stage;
      EXPECT_TRUE(gathered > 0 || stage == 3);
      std::printf("stage %lld: all ranks together sent %lld bytes in gathers\n", static_cast<long long>(stage),
                  static_cast<long long>(gathered));
    }
  }
}

Model small_model(int64_t ranks, DType dtype = DType::f32) {
  Model model{.ranks = ranks, .counts = {640}, .rows = {10}, .by_rows = true};
  model.recipe.untouched = true;
  model.recipe.average = true;
  model.recipe.dtype = dtype;
  return model;
}

void give_row(Optimizer &optimizer, const Model &model, int64_t row, float value) {
  const Entries values = encode(std::vector<float>(64, value), model.grad_dtype(0));
  expect_ok(optimizer.grad_ready_rows(0, &row, values.data(), 1), "grad_ready_rows");
}

/// The bits of a skipped step stay, and its rows are not those of the next.
TEST(UntouchedRows, SkippedStepsLeaveEverythingAndForgetTheirRows) {
  for (const int64_t ranks : {1, 3}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      const Model model = small_model(ranks);
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, {.stage = stage});
        const End before = end_of(*optimizer, model);
        zero_step_result result{};
        give_row(*optimizer, model, 9, group->rank() == ranks - 1 ? INFINITY : 1);
        end_step(*optimizer, false, &result);
        EXPECT_EQ(result.skipped, 1);
        End after = end_of(*optimizer, model);
        EXPECT_TRUE(before.slots == after.slots && before.params == after.params) << "stage " << stage;
        give_row(*optimizer, model, 3, 1);
        end_step(*optimizer, false, &result);
        EXPECT_EQ(updates_of(*optimizer, 0), 1);
        after = end_of(*optimizer, model);
        for (size_t i = 0; i < 640 * 4; ++i)
          EXPECT_TRUE(before.params[0][i] == after.params[0][i] || (i >= 3 * 256 && i < 4 * 256)) << "stage " << stage << " byte " << i;
        EXPECT_FALSE(before.params == after.params);
      });
    }
  }
}

/// A call with no rows gives none: no update is counted, and no average moves.
TEST(UntouchedRows, TablesOfWhichNoRowIsGivenAreNotUpdated) {
  for (const int64_t ranks : {1, 2}) {
    const Model model = small_model(ranks);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, {.stage = 2});
      zero_step_result result{};
      give_row(*optimizer, model, 0, 1);
      end_step(*optimizer, false, &result);
      const End before = end_of(*optimizer, model);
      if (group->rank() == 0) expect_ok(optimizer->grad_ready_rows(0, nullptr, nullptr, 0), "grad_ready_rows");
      end_step(*optimizer, false, &result);
      EXPECT_EQ(result.step, 2);
      EXPECT_TRUE(before.slots == end_of(*optimizer, model).slots);
    });
  }
}

/// Between reduce and gather a caller may edit any row of its view; all ranks get it.
TEST(UntouchedRows, EditsThroughViewsReachAllRanks) {
  for (const int64_t stage : {1, 2}) {
    const Model model = small_model(2);
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, {.stage = stage});
      give_row(*optimizer, model, 0, 1);
      expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
      expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
      View view{};
      expect_ok(optimizer->view(0, ZERO_SLOT_PARAM, &view), "view");
      static_cast<float *>(view.data)[view.count - 1] = 7;
      expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
      const std::vector<float> values = decode(acquired(*optimizer, model, 0).data(), DType::f32, 640);
      EXPECT_EQ(std::count(values.begin(), values.end(), 7.0F), 2) << "stage " << stage;
    });
  }
}

/// Rows that a step updates follow their masters, the others wait for begin.
TEST(UntouchedRows, MastersThatWereWrittenWaitForBegin) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    const Model model = small_model(2, DType::bf16);
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, {.stage = stage});
      const std::vector<float> written(640, 3);
      const int64_t mine = group->rank() == 0 ? 640 : 0;
      expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, written.data(), mine)), "write");
      zero_step_result result{};
      give_row(*optimizer, model, 0, 1);
      end_step(*optimizer, false, &result);
      expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
      const std::vector<float> values = decode(acquired(*optimizer, model, 0).data(), DType::bf16, 640);
      EXPECT_EQ(std::count(values.begin() + 64, values.end(), 3.0F), 576) << "stage " << stage;
      EXPECT_LT(values[0], 3);
    });
  }
}

/// A step that follows at once waits for the writer before it changes its rows.
TEST(UntouchedRows, AsynchronousSavesHoldTheStepThatTheyWereCalledAfter) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    const SaveFolder folder;
    Slots saved;
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const Model model = small_model(3, DType::bf16);
      const auto optimizer = begun_optimizer(group, model, {.stage = stage, .overlap = stage % 2 == 1});
      zero_step_result result{};
      give_row(*optimizer, model, group->rank(), 1);
      end_step(*optimizer, false, &result);
      const End before = end_of(*optimizer, model);
      zero_checkpoint_result written{};
      const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SNAPSHOT, ZERO_SNAPSHOT_LAZY}});
      const auto operation = begin_save(*checkpoint, folder.path(), &written);
      give_row(*optimizer, model, 1, 1);
      end_step(*optimizer, false, &result);
      expect_ok(checkpoint->queue()->wait(operation), "save_async");
      EXPECT_FALSE(before.slots == end_of(*optimizer, model).slots);
      if (group->rank() == 0) saved = before.slots;
    });
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const Model model = small_model(2, DType::bf16);
      const auto optimizer = make_optimizer(group, model, {.stage = 3 - stage});
      expect_ok(load(*checkpoint_of(optimizer), folder.path()), "load");
      EXPECT_TRUE(end_of(*optimizer, model).slots == saved) << "stage " << stage;
    });
  }
}

/// Adds a table of this shape with one key of the optimizer, and one of the table.
Status added(std::vector<int64_t> shape, const char *algorithm, int32_t key, int64_t value, bool of_table) {
  Status status;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Config config;
    Config table;
    EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, algorithm).ok());
    EXPECT_TRUE(config.set_i64(ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED).ok());
    EXPECT_TRUE(table.set_i64(ZERO_KEY_ROWS, 1).ok());
    EXPECT_TRUE((of_table ? table : config).set_i64(key, value).ok());
    std::shared_ptr<Optimizer> optimizer;
    expect_ok(Optimizer::create(group, config, &optimizer), "create");
    int64_t id = 0;
    Status mine = optimizer->add_param(&table, "table", ZERO_DTYPE_F32, shape.data(), std::ssize(shape), &id);
    if (mine.ok()) mine = optimizer->seal_queue()->run(optimizer->seal());
    if (mine.ok()) mine = run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL));
    if (mine.ok()) mine = run_task(*optimizer, optimizer->step(nullptr));
    if (group->rank() == 0) status = mine;
  });
  return status;
}

TEST(UntouchedRows, WhatChangesRowsTogetherIsRefusedWithBothNames) {
  const auto refused = [](const char *algorithm, int32_t key, int64_t value, bool of_table, const char *name) {
    const Status status = added({4, 100}, algorithm, key, value, of_table);
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED) << name;
    EXPECT_TRUE(contains(status, "ZERO_KEY_ROWS is 1") && contains(status, name)) << status.text();
    EXPECT_TRUE(contains(status, "ZERO_UNFILLED_UNTOUCHED") || key == ZERO_KEY_REPLICA_RANKS) << status.text();
  };
  refused("lamb", ZERO_KEY_STAGE, 1, false, "ZERO_KEY_ALGORITHM of its set is \"lamb\"");
  refused("muon", ZERO_KEY_STAGE, 1, false, "ZERO_KEY_ALGORITHM of its set is \"muon\"");
  refused("adamw", ZERO_KEY_REPLICA_RANKS, 1, false, "ZERO_KEY_REPLICA_RANKS");
  for (const bool of_table : {false, true}) {
    refused("adamw", ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3, of_table, "ZERO_KEY_PARAM_DTYPE is f8_e4m3");
    refused("adamw", ZERO_KEY_FIRST_MOMENT_DTYPE, ZERO_DTYPE_F8_E4M3, of_table, "ZERO_KEY_FIRST_MOMENT_DTYPE is f8_e4m3");
    refused("adamw", ZERO_KEY_SECOND_MOMENT_DTYPE, ZERO_DTYPE_F8_UE5M3, of_table, "ZERO_KEY_SECOND_MOMENT_DTYPE is f8_ue5m3");
  }
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{0, 5}, {5, 0}, {1, 1}, {256}})
    expect_ok(added(shape, "adamw", ZERO_KEY_STAGE, 2, false), "an empty table, or one of one element");
}

}  // namespace
}  // namespace zero::test::untouched_rows_test
