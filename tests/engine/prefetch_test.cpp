/// @file Gathers that run ahead: whatever order the caller takes, it gets the parameters of now, and memory stays within the limit.
#include "group/collectives.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>

namespace zero::test::prefetch_test {
namespace {

Model layers(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 40, 0, 2500, 5000, 100, 7000};
  return model;
}

/// A sealed optimizer of stage 3 that may gather `most` bytes ahead.
std::shared_ptr<Optimizer> make_ahead(const std::shared_ptr<Group> &group, const Model &model, int64_t most,
                                      const std::vector<int64_t> &order = {}) {
  Manner manner;
  manner.stage = 3;
  manner.overlap = true;
  Config config = make_config(model, manner);
  EXPECT_TRUE(config.set_i64(ZERO_KEY_PREFETCH_BYTES, most).ok());
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, config, &optimizer).ok());
  for (int64_t id = 0; id < model.tensors(); ++id) {
    int64_t out = 0;
    const std::string name = "p" + std::to_string(id);
    EXPECT_TRUE(optimizer->add_param(nullptr, name.c_str(), ZERO_DTYPE_F32, &model.counts[static_cast<size_t>(id)], 1, &out).ok());
  }
  EXPECT_TRUE(optimizer->set_gather_order(order.data(), static_cast<int64_t>(order.size())).ok());
  EXPECT_TRUE(group->queue()->run(optimizer->seal()).ok());
  begin_training(*optimizer, model, manner);
  return optimizer;
}

/// Acquires and releases tensors in the order given; each must hold `expected`.
void visit(Optimizer &optimizer, const Model &model, const std::vector<int64_t> &order, const std::vector<std::vector<float>> &expected,
           bool into_own_memory = false) {
  for (const int64_t id : order) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<float> own(static_cast<size_t>(count));
    void *data = nullptr;
    void *dst = into_own_memory && count > 0 ? own.data() : nullptr;
    const Status status = optimizer.queue()->run(optimizer.param_acquire(id, dst, dst != nullptr ? count : 0, &data));
    ASSERT_TRUE(status.ok()) << status.text();
    const std::vector<float> &wanted = expected[static_cast<size_t>(id)];
    EXPECT_TRUE(count == 0 || std::memcmp(data, wanted.data(), wanted.size() * sizeof(float)) == 0) << "tensor " << id;
    ASSERT_TRUE(optimizer.param_release(id).ok());
  }
}

std::vector<std::vector<float>> params_of(Optimizer &optimizer, const Model &model) {
  std::vector<std::vector<float>> params;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    params.emplace_back(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
    const Status status =
        optimizer.queue()->run(optimizer.read(id, ZERO_SLOT_PARAM, 0, params.back().data(), model.counts[static_cast<size_t>(id)]));
    EXPECT_TRUE(status.ok()) << status.text();
  }
  return params;
}

void train_once(Optimizer &optimizer, const Model &model, int64_t step) {
  Manner manner;
  manner.stage = 3;
  train_step(optimizer, model, manner, step);
}

class Ahead : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(MostBytes, Ahead, testing::Values(0, 12'000, 30'000, 1 << 20));

TEST_P(Ahead, EveryVisitSeesTheParametersOfNow) {
  const Model model = layers(3);
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, GetParam());
    const std::vector<int64_t> passes = {0, 1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1, 0};
    for (int64_t step = 0; step < 4; ++step) {
      const auto params = params_of(*optimizer, model);
      visit(*optimizer, model, passes, params, step % 2 == 1);
      train_once(*optimizer, model, step);
    }
    MemoryUse use{};
    ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM_POOL, &use).ok());
    EXPECT_LE(use.now_nbytes, use.constant_nbytes);
  });
}

TEST_P(Ahead, OrdersThatChangeCostTimeAndNothingElse) {
  const Model model = layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, GetParam());
    std::mt19937_64 random(17);  // the same on all ranks
    for (int64_t step = 0; step < 12; ++step) {
      const auto params = params_of(*optimizer, model);
      std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1, 0};
      if (step % 3 == 2) std::shuffle(order.begin(), order.end(), random);
      if (step % 4 == 3) visit(*optimizer, model, {0, 1, 2, 3, 4, 5, 6}, params);  // an evaluation before the step
      if (step == 5) order.resize(4);
      visit(*optimizer, model, order, params);
      train_once(*optimizer, model, step);
    }
  });
}

TEST_P(Ahead, AGivenOrderServesTheFirstStep) {
  const Model model = layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const std::vector<int64_t> passes = {6, 5, 4, 3, 2, 1, 0};
    const auto optimizer = make_ahead(group, model, GetParam(), passes);
    const auto params = params_of(*optimizer, model);
    visit(*optimizer, model, passes, params);
    train_once(*optimizer, model, 0);
    visit(*optimizer, model, {0, 3, 6}, params_of(*optimizer, model));
  });
}

Model equal_layers(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {1024, 1024, 1024, 1024};
  return model;
}

/// Ranks that release at different times have run ahead alike where they leave the order.
TEST(Prefetch, WhenRanksReleaseIsTheirOwnAffair) {
  const Model model = equal_layers(2);
  for (const int64_t most : {4096, 8192, 12'288}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = make_ahead(group, model, most);
      for (int64_t step = 0; step < 3; ++step) {
        const auto params = params_of(*optimizer, model);
        const auto acquire = [&](int64_t id) {
          void *data = nullptr;
          const Status status = run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data));
          ASSERT_TRUE(status.ok()) << status.text();
          EXPECT_EQ(std::memcmp(data, params[static_cast<size_t>(id)].data(), 4096), 0) << "tensor " << id << " in step " << step;
        };
        // Rank 1 keeps all until the end of the first pass.
        for (const int64_t id : {0, 1, 2, 3}) {
          acquire(id);
          if (group->rank() == 0) {
            ASSERT_TRUE(optimizer->param_release(id).ok());
          }
        }
        for (int64_t id = 0; id < 4 && group->rank() == 1; ++id) ASSERT_TRUE(optimizer->param_release(id).ok());
        for (const int64_t id : {0, 2, 1, 3}) {
          acquire(id);
          ASSERT_TRUE(optimizer->param_release(id).ok());
        }
        train_once(*optimizer, model, step);
      }
    });
  }
}

/// Buffers stay for a caller that has all tensors at once: the pool neither grows nor shrinks from step to step.
TEST(Prefetch, CallersThatReleaseLateFindTheirBuffersAgain) {
  const Model model = equal_layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, 4096);
    MemoryUse before{};
    for (int64_t step = 0; step < 6; ++step) {
      for (int64_t id = 0; id < model.tensors(); ++id) {
        void *data = nullptr;
        ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)).ok());
        MemoryUse use{};
        ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM_POOL, &use).ok());
        EXPECT_TRUE(step < 3 || use.now_nbytes == before.now_nbytes) << step << " " << id;
        before = use;
      }
      for (int64_t id = 0; id < model.tensors(); ++id) ASSERT_TRUE(optimizer->param_release(id).ok());
      train_once(*optimizer, model, step);
    }
  });
}

TEST(Prefetch, DifferentTensorsOfOneShapeAreNoCollective) {
  const Model model = equal_layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, 0);
    void *data = nullptr;
    const Status status = run_task(*optimizer, optimizer->param_acquire(group->rank(), nullptr, 0, &data));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_FALSE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).ok());
  });
}

/// What each step acquires, once its habit is known, is gathered once, and nothing else is.
TEST(Prefetch, StepsOfOneHabitGatherNothingInVain) {
  const Model model = layers(2);
  struct Habit {
    std::vector<int64_t> first;  ///< the order of the first step
    std::vector<int64_t> later;
  };
  const Habit habits[] = {
      {{0, 3, 4}, {0, 4, 0, 3}},                          // another order, in which a tensor comes twice
      {{4, 5, 6, 4, 5, 6}, {4, 5, 6}},                    // two micro-steps, then one
      {{4, 5, 6, 6, 5, 4}, {4, 5, 6, 4, 5, 6, 6, 5, 4}},  // an evaluation before every step
      {{0, 1, 3, 4, 5, 6}, {0, 1, 3}},
  };
  for (const Habit &habit : habits) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto ahead = make_ahead(group, model, 1 << 20);
      const auto behind = make_ahead(group, model, 0);
      const auto sent_by = [&](Optimizer &optimizer, const std::vector<int64_t> &order, int64_t step) {
        const auto params = params_of(optimizer, model);
        const int64_t before = optimizer.traffic(OperationKind::all_gather).sent_elements;
        visit(optimizer, model, order, params);
        train_once(optimizer, model, step);
        return optimizer.traffic(OperationKind::all_gather).sent_elements - before;
      };
      for (int64_t step = 0; step < 6; ++step) {
        const std::vector<int64_t> &order = step == 0 ? habit.first : habit.later;
        const int64_t sent = sent_by(*ahead, order, step);
        const int64_t acquired = sent_by(*behind, order, step);
        if (step >= 2) {
          EXPECT_EQ(sent, acquired) << "step " << step << " of a habit of " << habit.later.size();
        }
      }
    });
  }
}

TEST(Prefetch, TensorsOfManyNamesCostTheirMemoryOnce) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Config config;
    Config tie;
    ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, 3).ok() && tie.set_i64(ZERO_KEY_TIED_TO, 0).ok());
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    constexpr int64_t kCount = 10'000;
    std::vector<int64_t> ids(6);
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string name = "p" + std::to_string(i);
      ASSERT_TRUE(optimizer->add_param(i < 2 ? nullptr : &tie, name.c_str(), ZERO_DTYPE_F32, &kCount, 1, &ids[i]).ok());
    }
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
    const std::vector<float> grad(kCount);
    for (int64_t step = 0; step < 4; ++step) {
      void *data = nullptr;
      for (const int64_t id : ids) {
        ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)).ok());
        ASSERT_TRUE(optimizer->param_release(id).ok());
      }
      for (const int64_t id : ids) ASSERT_TRUE(optimizer->grad_ready(id, grad.data(), 0, kCount).ok());
      MemoryUse use;
      ASSERT_TRUE(optimizer->memory(ZERO_MEMORY_PARAM_POOL, &use).ok());
      EXPECT_LE(use.now_nbytes, use.formula_nbytes + use.constant_nbytes) << "step " << step;
      ASSERT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    }
  });
}

/// Which read the shards that initialisers write, and end only when other ranks have come.
TEST(Prefetch, InitialisersAreRefusedWhileGathersRunAhead) {
  const Model model = equal_layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, 1 << 20, {0, 1, 2, 3});
    for (int round = 0; round < 10; ++round) {
      visit(*optimizer, model, {0}, params_of(*optimizer, model));
      EXPECT_EQ(optimizer->init_param(1, ZERO_INITIALISER_CONSTANT, round, 0, 0).code(), ZERO_E_STATE);
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      ASSERT_TRUE(optimizer->init_param(1, ZERO_INITIALISER_CONSTANT, round, 0, 0).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
      const auto params = params_of(*optimizer, model);
      EXPECT_EQ(params[1][0], static_cast<float>(round));
      visit(*optimizer, model, {1}, params);
      train_once(*optimizer, model, round);
    }
  });
}

/// As in all later calls.
TEST(Prefetch, ANewDeadlineHoldsForAcquire) {
  const Model model = equal_layers(2);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_ahead(group, model, 0);
    const auto begin = std::chrono::steady_clock::now();
    if (group->rank() == 0) {
      group->set_deadline_ms(100);
      void *data = nullptr;
      EXPECT_EQ(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).code(), ZERO_E_TIMEOUT);
    }
    EXPECT_TRUE(group->queue()->run(barrier(*group)).ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // the deadline was 60 s
  });
}

TEST(Prefetch, OrdersNameParameters) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, Config(), &optimizer).ok());
    const int64_t ids[] = {0};
    EXPECT_EQ(optimizer->set_gather_order(ids, 1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->set_gather_order(nullptr, 1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->set_gather_order(ids, -1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(optimizer->set_gather_order(nullptr, 0).ok());
  });
}

TEST(Prefetch, AnOptimizerMayBeReleasedWhileGathersRunAhead) {
  const Model model = layers(2);
  for (int round = 0; round < 20; ++round) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = make_ahead(group, model, 1 << 20, {0, 1, 3, 4, 5, 6});
      void *data = nullptr;
      ASSERT_TRUE(optimizer->queue()->run(optimizer->param_acquire(0, nullptr, 0, &data)).ok());
    });
  }
}

}  // namespace
}  // namespace zero::test::prefetch_test
