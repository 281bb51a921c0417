/// @file Rounds of replicas with their neighbours: full synchronisations beside them, bytes and
/// memory, lost ranks, and refusals.
#include "tests/engine/refused_keys.h"
#include "tests/engine/ring_model.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace zero::test::neighbour_limits_test {
namespace {

using Values = std::vector<float>;

/// Whatever rounds came before, and in the middle of a period.
TEST(Neighbours, AreBroughtTogetherBySync) {
  for (const RingWorld &world : kRingWorlds) {
    for (const int64_t steps : {kRingPeriod, kRingPeriod + 1}) {
      Model model = ring_model(world, {700, 17, 0, 257});
      model.recipe.average = true;
      Manner manner;
      manner.stage = world.replicas % 4;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        for (int64_t step = 0; step < steps; ++step) (void)train_step(*optimizer, model, manner, step);
        zero_verify_result found{};
        expect_ok(run_task(*optimizer, optimizer->verify(&found)), "verify");
        EXPECT_EQ(found.found, ZERO_FINDING_NONE);
        std::vector<std::vector<Values>> before;
        for (const int32_t slot : {ZERO_SLOT_PARAM, ZERO_SLOT_AVERAGE})
          before.push_back(of_all_replicas(*group, read_slot(*optimizer, model, slot), world.replica_ranks));
        EXPECT_EQ(before[0][0] == before[0][1], world.replicas < 4 && steps == kRingPeriod);
        zero_step_result result{};
        expect_ok(run_task(*optimizer, optimizer->sync(&result)), "sync");
        EXPECT_EQ(result.synced, 1);
        expect_same_on_all_ranks(*optimizer);
        for (const int32_t slot : {ZERO_SLOT_PARAM, ZERO_SLOT_AVERAGE}) {
          const Values mine = read_slot(*optimizer, model, slot);
          for (const Values &values : of_all_ranks(*group, mine)) EXPECT_EQ(differing(values, mine), 0) << "slot " << slot;
          for (size_t k = 0; k < mine.size(); ++k) {
            double mean = 0;
            for (const Values &values : before[slot == ZERO_SLOT_PARAM ? 0 : 1]) mean += values[k] / static_cast<double>(world.replicas);
            ASSERT_NEAR(mine[k], mean, 1e-6) << "slot " << slot;
          }
        }
        for (int64_t step = steps; step < 3 * kRingPeriod; ++step)
          EXPECT_EQ(train_step(*optimizer, model, manner, step).synced, (step + 1) % kRingPeriod == 0 ? 1 : 0);
      });
    }
  }
}

TEST(Neighbours, AreSentTheBytesOfTheFormula) {
  for (const RingWorld &world : kRingWorlds) {
    for (const int64_t stage : {0, 1, 3}) {
      for (const bool average : {false, true}) {
        Model model = ring_model(world, {8 * 1024});
        model.recipe.average = average;
        Manner manner;
        manner.stage = stage;
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
          const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          ASSERT_NE(optimizer, nullptr);
          const int64_t share = model.counts[0] / (stage == 0 ? 1 : world.replica_ranks) * (average ? 2 : 1);
          const int64_t sent = (world.replicas == 2 ? 1 : 2) * share;
          const std::string told =
              "with neighbours in a ring: after every 3 steps, in fp32; this rank sends " + std::to_string(4 * sent) + " bytes";
          EXPECT_NE(optimizer->describe().find(told), std::string::npos) << optimizer->describe();
          for (int64_t step = 0; step < 2 * kRingPeriod; ++step) {
            const int64_t rounds = (step + 1) / kRingPeriod;
            (void)train_step(*optimizer, model, manner, step);
            const Traffic traffic = optimizer->traffic(OperationKind::send);
            EXPECT_EQ(traffic.sent_elements, rounds * sent);
            EXPECT_EQ(traffic.sent_nbytes, rounds * 4 * sent);
          }
          expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
          EXPECT_EQ(optimizer->traffic(OperationKind::send).sent_nbytes, 2 * 4 * sent);
        });
      }
    }
  }
}

TEST(Neighbours, TakeTheMemoryOfTheFormula) {
  for (const int64_t replicas : {2, 4}) {
    Model model = ring_model({replicas, 1}, {1 << 20});
    model.algorithm = "sgd";
    model.steps = kRingPeriod;
    run_world(replicas, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < model.steps; ++step) (void)train_step(*optimizer, model, Manner{}, step);
      MemoryUse workspace{};
      expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &workspace), "memory");
      EXPECT_GE(workspace.now_nbytes, (4 + (replicas == 2 ? 1 : 2)) << 20);
      EXPECT_LE(workspace.peak_nbytes, (6 << 20) + (64 << 10));
    });
  }
}

/// Replica 2 of five is no neighbour of replicas 0 and 4.
TEST(Neighbours, ARankThatLeavesEndsTheRoundOfAllReplicas) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (const int64_t left : {int64_t{0}, kRingPeriod - 1}) {
      const Model model = ring_model({5, 1}, {3000, 17});
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        Manner manner;
        manner.stage = stage;
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        const bool leaves = group->rank() == 2;
        Status status;
        for (int64_t step = 0; step < (leaves ? left : kRingPeriod) && status.ok(); ++step) {
          for (int64_t id = 0; id < model.tensors() && status.ok(); ++id) {
            const Values zeros(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
            status = optimizer->grad_ready(id, zeros.data(), 0, std::ssize(zeros));
          }
          if (status.ok()) status = run_task(*optimizer, optimizer->step(nullptr));
        }
        if (leaves) return;
        EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << "rank " << group->rank() << " stage " << stage << " " << status.text();
      });
    }
  }
}

TEST(Neighbours, AreRefusedByNameBesideWhatNeedsAllReplicas) {
  const Refused all[] = {
      {{{ZERO_KEY_SYNC_PERIOD, 1}}, {}, ZERO_E_INVALID_ARGUMENT, "but has no effect while ZERO_KEY_SYNC_PERIOD is 1"},
      {{}, {{ZERO_KEY_OUTER_LR, 0.5}}, ZERO_E_UNSUPPORTED, "ZERO_NEIGHBOURS_RING and ZERO_KEY_OUTER_LR 0.5, but an outer step needs"},
      {{},
       {{ZERO_KEY_OUTER_MOMENTUM, 0.75}},
       ZERO_E_UNSUPPORTED,
       "ZERO_NEIGHBOURS_RING and ZERO_KEY_OUTER_MOMENTUM 0.75, but an outer step"},
      {{{ZERO_KEY_SYNC_CODE, ZERO_CODE_I8}}, {}, ZERO_E_UNSUPPORTED, "ZERO_NEIGHBOURS_RING and ZERO_KEY_SYNC_CODE ZERO_CODE_I8, but codes"},
  };
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const WholeKeys ring = {{ZERO_KEY_REPLICA_RANKS, 2}, {ZERO_KEY_SYNC_PERIOD, 4}, {ZERO_KEY_NEIGHBOURS, ZERO_NEIGHBOURS_RING}};
    for (const Refused &refused : all) {
      expect_refused(group, ring, refused);
      expect_refused(group, ring, {refused.keys, refused.reals, refused.code, "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING"});
    }
  });
}

TEST(Neighbours, RefuseAnOuterStepWhileTheyRun) {
  const Model model = ring_model({4, 1}, {100});
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, Manner{});
    ASSERT_NE(optimizer, nullptr);
    for (const int32_t key : {ZERO_KEY_OUTER_LR, ZERO_KEY_OUTER_MOMENTUM}) {
      const Status status = optimizer->set_f64(0, key, 0.5);
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED) << status.text();
      EXPECT_TRUE(contains(status, "ZERO_KEY_NEIGHBOURS is ZERO_NEIGHBOURS_RING, so ZERO_KEY_OUTER_")) << status.text();
      expect_ok(optimizer->set_f64(0, key, key == ZERO_KEY_OUTER_LR ? 1 : 0), "set_f64");
    }
  });
}

TEST(Neighbours, ThatRanksSetDifferentlyAreAnErrorOnAllRanks) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    Config config;
    for (const auto &[key, value] : {std::pair{ZERO_KEY_REPLICA_RANKS, 2}, {ZERO_KEY_SYNC_PERIOD, 4}})
      expect_ok(config.set_i64(key, value), "set_i64");
    expect_ok(config.set_i64(ZERO_KEY_NEIGHBOURS, group->rank() == 3 ? ZERO_NEIGHBOURS_NONE : ZERO_NEIGHBOURS_RING), "set_i64");
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    const int64_t count = 5;
    int64_t id = 0;
    expect_ok(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id), "add_param");
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "ZERO_KEY_NEIGHBOURS = ZERO_NEIGHBOURS_")) << status.text();
  });
}

}  // namespace
}  // namespace zero::test::neighbour_limits_test
