/// @file begin: where first values come from, and which edits it takes over.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <vector>

namespace zero::test::first_values_test {
namespace {

TEST(Begin, ReplicasThatDifferAreNamed) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model;
    model.ranks = 3;
    model.counts = {100, 300};
    Manner manner;
    manner.stage = stage;
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = make_optimizer(group, model, manner);
      void *data = nullptr;
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(1, nullptr, 0, &data)).ok());
      static_cast<float *>(data)[299] = group->rank() == 2 ? 1.0F : 0.0F;
      ASSERT_TRUE(optimizer->param_release(1).ok());
      const Status status = run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL));
      EXPECT_EQ(status.code(), ZERO_E_REPLICAS_DIFFER);
      EXPECT_NE(std::strstr(status.text(), "\"p1\" differ from those of rank 0 on rank 2;"), nullptr) << status.text();
      EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).code(), ZERO_E_REPLICAS_DIFFER);
    });
  }
}

TEST(Begin, TakesOverEditsBetweenSteps) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model;
    model.ranks = 2;
    model.counts = {100, 600};
    Manner manner;
    manner.stage = stage;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_step(*optimizer, model, manner, 0);
      // Rank 1 writes parameters and states wherever they live; both ranks write one overlapping range.
      const std::vector<float> twos(600, 2.0F);
      const std::vector<float> mine(50, static_cast<float>(10 + group->rank()));
      const int64_t count = group->rank() == 1 ? 600 : 0;
      ASSERT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_PARAM, 0, twos.data(), count)).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_PARAM, 100 + 25 * group->rank(), mine.data(), 50)).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_FIRST_MOMENT, 0, twos.data(), count)).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      std::vector<float> got(600);
      void *data = nullptr;
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(1, got.data(), 600, &data)).ok());
      EXPECT_EQ(data, got.data());
      for (size_t i = 0; i < 600; ++i) EXPECT_EQ(got[i], i < 100 || i >= 175 ? 2.0F : i < 125 ? 10.0F : 11.0F) << i;
      ASSERT_TRUE(optimizer->param_release(1).ok());
      const std::vector<float> moments = read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT);
      for (size_t i = 100; i < 700; ++i) EXPECT_EQ(moments[i], 2.0F);
      EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_ROOT)).code(), stage == 3 ? ZERO_E_STATE : ZERO_OK);
      train_step(*optimizer, model, manner, 1);
    });
  }
}

TEST(Begin, ComesBetweenEditsOfParametersAndTheNextStep) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model;
    model.ranks = 2;
    model.counts = {100, 600};
    Manner manner;
    manner.stage = stage;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_step(*optimizer, model, manner, 0);
      const float value = 3;
      const auto edits = {
          std::function<Status()>([&] { return run_task(*optimizer, optimizer->write(1, ZERO_SLOT_PARAM, 5, &value, 1)); }),
          std::function<Status()>([&] { return optimizer->init_param(1, ZERO_INITIALISER_CONSTANT, 3, 0, 0); }),
      };
      for (const auto &edit : edits) {
        ASSERT_TRUE(edit().ok());
        void *grad = nullptr;
        int64_t accumulate = 0;
        for (const Status &status : {run_task(*optimizer, optimizer->step(nullptr)), run_task(*optimizer, optimizer->reduce(nullptr)),
                                     run_task(*optimizer, optimizer->micro_step(ZERO_MICRO_STEP_LOCAL)),
                                     optimizer->grad_acquire(0, &grad, &accumulate), optimizer->grad_ready(0, &value, 0, 1)}) {
          EXPECT_EQ(status.code(), ZERO_E_STATE);
          EXPECT_NE(std::strstr(status.text(), "zero_optimizer_begin takes them over"), nullptr) << status.text();
        }
        ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
        ASSERT_TRUE(optimizer->grad_acquire(0, &grad, &accumulate).ok());
        EXPECT_EQ(edit().code(), ZERO_E_STATE);
        give_gradients(*optimizer, model, manner, 1);
        // Neither begin nor, after it, the step could come now.
        EXPECT_EQ(edit().code(), ZERO_E_STATE);
        EXPECT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_FIRST_MOMENT, 5, &value, 1)).ok());
        EXPECT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      }
    });
  }
}

/// What ranks own of such values lies with them alone: a copy of another rank is older.
TEST(Begin, TakesValuesWrittenByRangeFromTheShardsOnly) {
  for (const int64_t ranks : {1, 2}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      Model model;
      model.ranks = ranks;
      model.counts = {100, 600};
      Manner manner;
      manner.stage = stage;
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        for (const bool initialises : {false, true}) {
          const auto optimizer = make_optimizer(group, model, manner);
          const std::vector<float> ones(600, 1.0F);
          const auto edit = [&] {
            if (initialises) {
              EXPECT_TRUE(optimizer->init_param(1, ZERO_INITIALISER_CONSTANT, 1, 0, 0).ok());
            } else {
              EXPECT_TRUE(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_PARAM, 0, ones.data(), 600)).ok());
            }
          };
          const auto refused = [&](int32_t source) {
            const Status status = run_task(*optimizer, optimizer->begin(source));
            return status.code() == ZERO_E_STATE && std::strstr(status.text(), "takes them over with ZERO_SOURCE_SHARDS") != nullptr;
          };
          edit();
          EXPECT_TRUE(refused(ZERO_SOURCE_ROOT));
          EXPECT_TRUE(refused(ZERO_SOURCE_LOCAL));
          ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
          EXPECT_EQ(read_slot(*optimizer, model, ZERO_SLOT_PARAM)[650], 1.0F);
          train_step(*optimizer, model, manner, 0);
          if (stage == 3) continue;
          EXPECT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_ROOT)).ok());
          edit();
          EXPECT_TRUE(refused(ZERO_SOURCE_ROOT));
        }
      });
    }
  }
}

TEST(Begin, TakesAParameterThatWasWrittenAfterItsMasterAndAStep) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (const int64_t ranks : {1, 2}) {
      Model model;
      model.ranks = ranks;
      model.counts = {600};
      model.recipe.dtype = DType::bf16;
      Manner manner;
      manner.stage = stage;
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, manner);
        const std::vector<float> master(600, 1.0F);
        const std::vector<std::byte> param = encode(std::vector<float>(600, 2.0F), DType::bf16);
        std::vector<std::byte> read(param.size());
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, master.data(), 600)).ok());
        train_step(*optimizer, model, manner, 0);
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 0, param.data(), 600)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, read.data(), 600)).ok());
        EXPECT_EQ(read, param);
        // Written together, the parameter is its master's rounding.
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 0, param.data(), 600)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, master.data(), 600)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, read.data(), 600)).ok());
        EXPECT_EQ(read, encode(master, DType::bf16));
        // A master of which no rank wrote an element was not written.
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 0, param.data(), 600)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, master.data(), 0)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, read.data(), 600)).ok());
        EXPECT_EQ(read, param);
      });
    }
  }
}

TEST(Begin, LetsAveragesFollowUntilTheFirstStepUnlessTheyWereWritten) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const int64_t ranks : {1, 2}) {
        Model model;
        model.ranks = ranks;
        model.counts = {100, 600};
        model.recipe.dtype = dtype;
        model.recipe.average = true;
        Manner manner;
        manner.stage = stage;
        run_world(ranks, [&](const std::shared_ptr<Group> &group) {
          const auto optimizer = begun_optimizer(group, model, manner);
          const auto averages_of = [&](int64_t id) {
            std::vector<float> averages(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
            expect_ok(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_AVERAGE, 0, averages.data(), std::ssize(averages))), "read");
            return averages;
          };
          const auto edit = [&](double value) {
            for (const int64_t id : {0, 1}) expect_ok(optimizer->init_param(id, ZERO_INITIALISER_CONSTANT, value, 0, 0), "init_param");
            expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
          };
          edit(3);
          EXPECT_EQ(averages_of(0), std::vector<float>(100, 3));
          EXPECT_EQ(averages_of(1), std::vector<float>(600, 3));
          const std::vector<float> written(600, 7);
          expect_ok(run_task(*optimizer, optimizer->write(1, ZERO_SLOT_AVERAGE, 0, written.data(), 600)), "write");
          for (const double value : {4, 5}) edit(value);
          EXPECT_EQ(averages_of(0), std::vector<float>(100, 5));
          EXPECT_EQ(averages_of(1), written);
          train_step(*optimizer, model, manner, 0);
          const std::vector<float> moved = averages_of(0);
          edit(6);
          EXPECT_EQ(averages_of(0), moved);
        });
      }
    }
  }
}

TEST(Begin, WithDifferentSourcesNamesThem) {
  run_world(3, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, {.ranks = 3, .counts = {100}}, {});
    const Status status = run_task(*optimizer, optimizer->begin(group->rank() == 2 ? ZERO_SOURCE_ROOT : ZERO_SOURCE_SHARDS));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_NE(std::strstr(status.text(), "rank 2 has source = ZERO_SOURCE_ROOT, rank 0 has source = ZERO_SOURCE_SHARDS"), nullptr)
        << status.text();
  });
}

std::vector<uint16_t> read_halves(Optimizer &optimizer, int32_t slot, int64_t count) {
  std::vector<uint16_t> halves(static_cast<size_t>(count));
  expect_ok(run_task(optimizer, optimizer.read(0, slot, 0, halves.data(), count)), "read");
  return halves;
}

/// Rank 0 writes all of parameter 0.
void write_halves(Optimizer &optimizer, int64_t rank, int32_t slot, const std::vector<uint16_t> &halves) {
  expect_ok(run_task(optimizer, optimizer.write(0, slot, 0, halves.data(), rank == 0 ? std::ssize(halves) : 0)), "write");
}

/// Every second element is another number of bf16.
std::vector<uint16_t> edited(std::vector<uint16_t> params) {
  for (size_t i = 1; i < params.size(); i += 2) params[i] ^= 1;
  return params;
}

class RemaindersOf : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(StagesAndRanks, RemaindersOf, testing::Combine(testing::Range<int64_t>(0, 4), testing::Values(1, 2, 3)));

TEST_P(RemaindersOf, WrittenElementsAreZeroWhereTheyChange) {
  const auto [stage, ranks] = GetParam();
  Model model{.ranks = ranks, .counts = {601, 7}};
  model.recipe = {.dtype = DType::bf16, .master = ZERO_MASTER_REMAINDER};
  Manner manner;
  manner.stage = stage;
  manner.verify_every = 1;
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < 2; ++step) train_step(*optimizer, model, manner, step);
    const std::vector<uint16_t> params = edited(read_halves(*optimizer, ZERO_SLOT_PARAM, 601));
    std::vector<uint16_t> expected = read_halves(*optimizer, ZERO_SLOT_MASTER, 601);
    const std::vector<uint16_t> before = expected;
    EXPECT_GT(std::count_if(before.begin(), before.end(), [](uint16_t half) { return half != 0; }), 500);
    for (size_t i = 1; i < expected.size(); i += 2) expected[i] = 0;
    write_halves(*optimizer, group->rank(), ZERO_SLOT_PARAM, params);
    EXPECT_EQ(read_halves(*optimizer, ZERO_SLOT_MASTER, 601), expected);
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    EXPECT_EQ(read_halves(*optimizer, ZERO_SLOT_PARAM, 601), params);
    EXPECT_EQ(read_halves(*optimizer, ZERO_SLOT_MASTER, 601), expected);
    expect_same_on_all_ranks(*optimizer);
    train_step(*optimizer, model, manner, 2);
    // Whoever writes both means both, in either order.
    write_halves(*optimizer, group->rank(), ZERO_SLOT_MASTER, before);
    write_halves(*optimizer, group->rank(), ZERO_SLOT_PARAM, edited(params));
    EXPECT_EQ(read_halves(*optimizer, ZERO_SLOT_MASTER, 601), before);
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    write_halves(*optimizer, group->rank(), ZERO_SLOT_PARAM, params);
    write_halves(*optimizer, group->rank(), ZERO_SLOT_MASTER, before);
    EXPECT_EQ(read_halves(*optimizer, ZERO_SLOT_MASTER, 601), before);
  });
}

}  // namespace
}  // namespace zero::test::first_values_test
