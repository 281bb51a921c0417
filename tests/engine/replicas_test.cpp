/// @file Replicas that make steps of their own: what they are brought together to, when, and what goes on beside it.
#include "group/collectives.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace zero::test::replicas_test {
namespace {

struct Local {
  int64_t ranks;
  int64_t replica_ranks;
  int64_t period;
  int64_t after;
  double outer_lr;
  double outer_momentum;
};

constexpr Local kLocals[] = {
    {2, 1, 2, 0, 1, 0},     {4, 2, 3, 0, 1, 0}, {4, 2, 1, 0, 1, 0},   {4, 1, 2, 0, 0.7, 0.9}, {6, 2, 2, 3, 0.7, 0.9},
    {8, 4, 3, 0, 0.5, 0.5}, {8, 2, 4, 2, 1, 0}, {3, 1, 5, 0, 1, 0.9}, {4, 2, 2, 4, 0.9, 0},   {4, 2, int64_t{1} << 40, 0, 1, 0}};

Model model_of(const Local &local, int64_t steps) {
  Model model;
  model.seed = static_cast<uint64_t>(local.ranks * 100 + local.period % 97);
  model.ranks = local.ranks;
  model.counts = {3000, 17, 0, 1024, 1, 257};
  model.steps = steps;
  model.recipe.replica_ranks = local.replica_ranks;
  model.recipe.sync_period = local.period;
  model.recipe.sync_after = local.after;
  model.recipe.outer_lr = local.outer_lr;
  model.recipe.outer_momentum = local.outer_momentum;
  return model;
}

bool together(const Local &local, int64_t step) { return local.period == 1 || step < local.after; }
bool due(const Local &local, int64_t step) { return !together(local, step) && (step + 1 - local.after) % local.period == 0; }

/// Local SGD and the outer step in float64, without shards, for one tensor.
class Reference {
 public:
  Reference(const Model &model, const Local &local, int64_t id) : model_(model), local_(local), id_(id) {
    for (int64_t k = 0; k < count(); ++k) anchor_.push_back(first_value_at(model, id, k));
    moment_.assign(anchor_.size(), 0);
    replicas_.assign(static_cast<size_t>(local.ranks / local.replica_ranks), anchor_);
  }

  void step(int64_t step) {
    const bool all = together(local_, step);
    for (size_t replica = 0; replica < replicas_.size(); ++replica) {
      const int64_t first = all ? 0 : static_cast<int64_t>(replica) * local_.replica_ranks;
      const int64_t ranks = all ? local_.ranks : local_.replica_ranks;
      for (int64_t k = 0; k < count(); ++k) {
        double sum = 0;
        for (int64_t rank = first; rank < first + ranks; ++rank) sum += gradient_at(model_, step, rank, id_, k);
        double &value = replicas_[replica][static_cast<size_t>(k)];
        value -= 0.01 * (sum / static_cast<double>(ranks) + model_.weight_decay * value);
      }
    }
    if (all) anchor_ = replicas_[0];
    if (due(local_, step)) bring_together();
  }

  const std::vector<double> &values(int64_t replica) const { return replicas_[static_cast<size_t>(replica)]; }

 private:
  int64_t count() const { return model_.counts[static_cast<size_t>(id_)]; }
  void bring_together() {
    for (size_t k = 0; k < anchor_.size(); ++k) {
      double change = 0;
      for (const std::vector<double> &replica : replicas_) change += anchor_[k] - replica[k];
      change /= static_cast<double>(replicas_.size());
      moment_[k] = local_.outer_momentum * moment_[k] + change;
      anchor_[k] -= local_.outer_lr * (change + local_.outer_momentum * moment_[k]);
    }
    for (std::vector<double> &replica : replicas_) replica = anchor_;
  }

  const Model &model_;
  const Local &local_;
  int64_t id_;
  std::vector<double> anchor_;
  std::vector<double> moment_;
  std::vector<std::vector<double>> replicas_;
};

std::vector<float> read_param(Optimizer &optimizer, const Model &model, int64_t id) {
  std::vector<float> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_PARAM, 0, values.data(), std::ssize(values))), "read");
  return values;
}

TEST(Replicas, FollowTheFormulaStepByStep) {
  for (const Local &local : kLocals) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      Model model = model_of(local, 9);
      model.algorithm = "sgd";
      Manner manner;
      manner.stage = stage;
      manner.overlap = stage % 2 == 1;
      run_world(local.ranks, [&](const std::shared_ptr<Group> &group) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        std::vector<Reference> references;
        for (int64_t id = 0; id < model.tensors(); ++id) references.emplace_back(model, local, id);
        for (int64_t step = 0; step < model.steps; ++step) {
          const zero_step_result result = train_step(*optimizer, model, manner, step);
          EXPECT_EQ(result.synced, due(local, step) ? 1 : 0);
          EXPECT_TRUE(result.synced == 0 ? result.spread == 0 : result.spread > 0 && result.spread <= 1.0000001) << result.spread;
          for (int64_t id = 0; id < model.tensors(); ++id) {
            references[static_cast<size_t>(id)].step(step);
            const std::vector<float> found = read_param(*optimizer, model, id);
            const std::vector<double> &wanted = references[static_cast<size_t>(id)].values(group->rank() / local.replica_ranks);
            for (size_t k = 0; k < found.size(); ++k) {
              ASSERT_NEAR(found[k], wanted[k], 2e-6)
                  << "stage " << stage << " step " << step << " tensor " << id << " element " << k << "\n"
                  << model.recipe.text();
            }
          }
        }
      });
    }
  }
}

/// Errors of single periods do not add up.
TEST(Replicas, FollowTheOuterStepForFiftyPeriods) {
  int64_t stage = 0;
  for (const auto &[lr, momentum] : {std::pair{0.7, 0.9}, {1.0, 0.0}, {0.5, 0.5}, {0.9, 0.6}}) {
    const Local local = {4, 2, 2, 0, lr, momentum};
    Model model = model_of(local, 100);
    model.algorithm = "sgd";
    model.counts = {300};
    Manner manner;
    manner.stage = stage++;
    run_world(local.ranks, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      Reference reference(model, local, 0);
      for (int64_t step = 0; step < model.steps; ++step) {
        (void)train_step(*optimizer, model, manner, step);
        reference.step(step);
        const std::vector<float> found = read_param(*optimizer, model, 0);
        const std::vector<double> &wanted = reference.values(group->rank() / local.replica_ranks);
        for (size_t k = 0; k < found.size(); ++k)
          ASSERT_NEAR(found[k], wanted[k], 2e-6) << "rate " << lr << " momentum " << momentum << " step " << step << " element " << k;
      }
    });
  }
}

/// The recipe is the same; where shards lie and how data moves is not.
TEST(Replicas, HaveTheSameBitsInEveryManner) {
  const int64_t models = full_tests() ? 100 : few_tests() ? 4 : 12;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 1;
    const Local &local = kLocals[static_cast<size_t>(i) % std::size(kLocals)];
    Model model = random_model(seed + 500, local.ranks, 1 << 12);
    const Recipe of_local = model_of(local, 1).recipe;
    // Some replica would have no weight at all in some step.
    if (model.divisor == ZERO_DIVISOR_WEIGHTS) model.divisor = ZERO_DIVISOR_RANKS;
    if (i % 3 > 0) model.recipe = random_recipe(seed, model.algorithm);
    if (model.recipe.master == ZERO_MASTER_NONE) model.recipe.master = ZERO_MASTER_F32;
    model.recipe.replica_ranks = of_local.replica_ranks;
    model.recipe.sync_period = of_local.sync_period;
    model.recipe.sync_after = of_local.sync_after;
    model.recipe.outer_lr = of_local.outer_lr;
    model.recipe.outer_momentum = of_local.outer_momentum;
    model.steps = 7;
    run_world(local.ranks, [&](const std::shared_ptr<Group> &group) { (void)expect_same_in_every_manner(group, model, seed * 1000); });
  }
}

/// Steps, then sync(): all ranks have the bits of rank 0.
TEST(Replicas, HaveTheSameParametersAfterASynchronisation) {
  for (const Local &local : kLocals) {
    if (local.period == 1) continue;
    Model model = model_of(local, 5);
    model.recipe.average = true;
    Manner manner;
    manner.stage = local.ranks % 4;
    run_world(local.ranks, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < model.steps; ++step) (void)train_step(*optimizer, model, manner, step);
      zero_step_result result{};
      expect_ok(run_task(*optimizer, optimizer->sync(&result)), "sync");
      EXPECT_EQ(result.step, 5);
      expect_same_on_all_ranks(*optimizer);
      for (const int32_t slot : {ZERO_SLOT_PARAM, ZERO_SLOT_AVERAGE}) {
        const std::vector<float> mine = read_slot(*optimizer, model, slot);
        std::vector<float> first = mine;
        OperationQueue queue;
        expect_ok(queue.run(broadcast(*group, first.data(), std::ssize(first), DType::f32, 0)), "broadcast");
        EXPECT_EQ(differing(mine, first), 0) << "slot " << slot << " rank " << group->rank();
      }
      expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync of replicas that are together");
    });
  }
}

/// The next outer step counts from masters that were written while replicas were together.
TEST(Replicas, GoOnFromMastersThatWereWritten) {
  Model model = model_of({4, 2, 2, 0, 0.7, 0}, 4);
  model.counts = {700};
  model.recipe.dtype = DType::bf16;
  Manner manner;
  manner.stage = 2;
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, manner, step);
    std::vector<float> written(700, 3);
    expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_MASTER, 0, written.data(), group->rank() == 0 ? 700 : 0)), "write");
    for (int64_t step = 2; step < 4; ++step) (void)train_step(*optimizer, model, manner, step);
    std::vector<float> masters(700);
    expect_ok(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_MASTER, 0, masters.data(), 700)), "read");
    for (const float value : masters) EXPECT_NEAR(value, 3, 0.1);
  });
}

/// The last rank overflows in one step of a period: its replica alone skips, with the bits it had, and all meet again with one loss scale.
TEST(Replicas, SkipByThemselvesAndMeetAgain) {
  constexpr int64_t kPeriod = 4;
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t bad = 0; bad < kPeriod; ++bad) {
      Model model = model_of({4, 2, kPeriod, 0, 0.7, 0.9}, 2 * kPeriod);
      model.recipe.overflow_step = bad;
      model.recipe.loss_scale = 4;
      Manner manner;
      manner.stage = stage;
      run_world(4, [&](const std::shared_ptr<Group> &group) {
        const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        const bool overflows = group->rank() >= 2;
        for (int64_t step = 0; step < model.steps; ++step) {
          const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT);
          const zero_step_result result = train_step(*optimizer, model, manner, step);
          EXPECT_EQ(result.skipped, overflows && step == bad ? 1 : 0) << "step " << step;
          const bool kept = differing(before, read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT)) == 0;
          EXPECT_EQ(kept, result.skipped == 1);
          if (result.synced == 0) continue;
          const std::vector<float> mine = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
          std::vector<float> first = mine;
          double scale = result.loss_scale;
          OperationQueue queue;
          expect_ok(queue.run(broadcast(*group, first.data(), std::ssize(first), DType::f32, 0)), "broadcast");
          expect_ok(queue.run(broadcast(*group, &scale, 1, DType::f64, 0)), "broadcast");
          EXPECT_EQ(differing(mine, first), 0);
          EXPECT_EQ(scale, result.loss_scale);
        }
      });
    }
  }
}

/// The ranks of the replica see a stop at once, all ranks at the synchronisation.
TEST(Replicas, SeeAStopAtOnceAndAllOfThemWhenTheyMeet) {
  Model model = model_of({4, 2, 4, 0, 1, 0}, 5);
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const Manner manner;
    const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
    ASSERT_NE(optimizer, nullptr);
    const std::array<int64_t, 5> of_first = {0, 7, 0, 7, 0};
    const std::array<int64_t, 5> of_second = {0, 0, 0, 7, 0};
    for (int64_t step = 0; step < model.steps; ++step) {
      EXPECT_EQ(step == 1 && group->rank() == 1 ? optimizer->request_stop(7) : ZERO_OK, ZERO_OK);
      const zero_step_result result = train_step(*optimizer, model, manner, step);
      EXPECT_EQ(result.stop_reason, (group->rank() < 2 ? of_first : of_second)[static_cast<size_t>(step)]) << "step " << step;
    }
  });
}

/// The last rank, of the last replica, leaves before a step: that ends the steps of all ranks of all replicas, at the latest when they
/// meet.
TEST(Replicas, ARankThatLeavesEndsTheStepsOfAllReplicas) {
  constexpr int64_t kPeriod = 4;
  for (const int64_t period : {int64_t{1}, kPeriod}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (int64_t left = 0; left < kPeriod; ++left) {
        const Model model = model_of({4, 2, period, 0, 1, 0}, kPeriod);
        run_world(4, [&](const std::shared_ptr<Group> &group) {
          Manner manner;
          manner.stage = stage;
          manner.overlap = left % 2 == 1;
          std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
          ASSERT_NE(optimizer, nullptr);
          const bool leaves = group->rank() == 3;
          Status status;
          int64_t step = 0;
          for (; step < (leaves ? left : kPeriod) && status.ok(); ++step) {
            for (int64_t id = 0; id < model.tensors() && status.ok(); ++id) {
              const std::vector<float> zeros(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
              status = optimizer->grad_ready(id, zeros.data(), 0, std::ssize(zeros));
            }
            if (status.ok()) status = run_task(*optimizer, optimizer->step(nullptr));
          }
          if (leaves) return;
          EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << "rank " << group->rank() << " stage " << stage << " " << status.text();
          EXPECT_LE(step, kPeriod) << "rank " << group->rank();
        });
      }
    }
  }
}

/// A bit of a parameter is flipped on rank 2, which is number 0 of the second replica.
TEST(Replicas, VerifyComparesThemWhileTheyAreTogether) {
  for (int64_t stage = 1; stage < 4; ++stage) {
    const Model model = model_of({4, 2, 2, 0, 1, 0}, 3);
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = stage;
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, manner, step);
      expect_same_on_all_ranks(*optimizer);
      View view{};
      expect_ok(optimizer->view(0, ZERO_SLOT_PARAM, &view), "view");
      auto *words = static_cast<uint32_t *>(view.data);
      if (stage == 3 && group->rank() == 2) words[0] ^= 1U;
      zero_verify_result result{};
      expect_ok(run_task(*optimizer, optimizer->verify(&result)), "verify");
      EXPECT_EQ(result.found, stage == 3 ? ZERO_FINDING_REPLICAS : ZERO_FINDING_NONE);
      if (stage == 3) {
        EXPECT_EQ(result.rank, 0);
        EXPECT_EQ(result.other_rank, 2);
        EXPECT_EQ(result.slot, ZERO_SLOT_PARAM);
        words[0] ^= group->rank() == 2 ? 1U : 0U;
      }
      (void)train_step(*optimizer, model, manner, 2);
      expect_same_on_all_ranks(*optimizer);  // of each replica
    });
  }
}

/// Elements that each rank sends are those of the formulas, on top of what one replica alone sends.
TEST(Replicas, SendWhatTheFormulasSay) {
  Every every(3);
  for (const int64_t ranks : {2, 4, 8}) {
    for (const int64_t replica_ranks : {1, 2, 4}) {
      if (replica_ranks >= ranks) continue;
      for (const int64_t period : {1, 2}) {
        for (int64_t stage = 0; stage < 4; ++stage) {
          if (!every.next()) continue;
          Model model = model_of({ranks, replica_ranks, period, 0, 1, 0}, 1);
          model.counts = {64 * 1024};
          model.algorithm = "sgd";
          run_world(ranks, [&](const std::shared_ptr<Group> &group) {
            Manner manner;
            manner.stage = stage;
            manner.norm = false;
            const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
            ASSERT_NE(optimizer, nullptr);
            const auto sent = [&optimizer] {
              int64_t elements = 0;
              for (const OperationKind kind : {OperationKind::reduce_scatter, OperationKind::all_gather, OperationKind::all_reduce})
                elements += optimizer->traffic(kind).sent_elements;
              return elements;
            };
            const int64_t before = sent();
            for (int64_t step = 0; step < period; ++step) (void)train_step(*optimizer, model, manner, step);
            const int64_t whole = model.counts[0];
            const int64_t own = whole / replica_ranks;
            const int64_t replicas = ranks / replica_ranks;
            const int64_t within = (replica_ranks - 1) * own * (stage == 3 ? 1 : 2) * period;
            const int64_t across = 2 * (replicas - 1) * (period > 1 && stage == 0 ? whole : own) / replicas;
            const int64_t votes = sent() - before - within - across;
            EXPECT_GE(votes, 0) << "ranks " << ranks << " of " << replica_ranks << " period " << period << " stage " << stage;
            EXPECT_LE(votes, (64 * period + 400) * ranks)
                << "ranks " << ranks << " of " << replica_ranks << " period " << period << " stage " << stage;
          });
        }
      }
    }
  }
}

/// States of AdamW, an anchor and an outer moment, over the ranks of a replica.
TEST(Replicas, TakeTheMemoryThatTheFormulaSays) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model = model_of({4, 2, 2, 0, 0.7, 0.9}, 2);
    model.counts = {64 * 1024};
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.stage = stage;
      const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      for (int64_t step = 0; step < model.steps; ++step) (void)train_step(*optimizer, model, manner, step);
      MemoryUse states{};
      MemoryUse workspace{};
      expect_ok(optimizer->memory(ZERO_MEMORY_STATE, &states), "memory");
      expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &workspace), "memory");
      EXPECT_EQ(states.formula_nbytes, 16 * model.counts[0] / (stage > 0 ? 2 : 1));
      EXPECT_EQ(states.now_nbytes, states.formula_nbytes + states.constant_nbytes);
      EXPECT_EQ(states.peak_nbytes, states.now_nbytes);
      EXPECT_GE(workspace.now_nbytes, 4 * model.counts[0]);
      EXPECT_LE(workspace.peak_nbytes, (4 << 20) + (64 << 10));
    });
  }
}

/// By their rules, over all ranks.
TEST(Replicas, SynchroniseModuleBuffersOverAllRanks) {
  run_world(4, [](const std::shared_ptr<Group> &group) {
    Config config;
    EXPECT_TRUE(config.set_i64(ZERO_KEY_REPLICA_RANKS, 2).ok());
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
    const int64_t count = 3;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id).ok());
    ASSERT_TRUE(optimizer->add_module_buffer("mean", ZERO_DTYPE_F32, &count, 1, ZERO_SYNC_AVERAGE, &id).ok());
    ASSERT_TRUE(optimizer->add_module_buffer("first", ZERO_DTYPE_F32, &count, 1, ZERO_SYNC_BROADCAST, &id).ok());
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    std::array<float *, 2> buffers{};
    for (int64_t number = 0; number < 2; ++number) {
      void *data = nullptr;
      int64_t elements = 0;
      expect_ok(optimizer->module_buffer(number, &data, &elements), "module_buffer");
      buffers[static_cast<size_t>(number)] = static_cast<float *>(data);
      for (int64_t k = 0; k < count; ++k) static_cast<float *>(data)[k] = static_cast<float>(group->rank() * group->rank() + k);
    }
    expect_ok(run_task(*optimizer, optimizer->sync_module_buffers()), "sync_module_buffers");
    for (int64_t k = 0; k < count; ++k) {
      EXPECT_EQ(buffers[0][k], 3.5F + static_cast<float>(k));  // the mean of 0, 1, 4 and 9
      EXPECT_EQ(buffers[1][k], static_cast<float>(k));
    }
  });
}

}  // namespace
}  // namespace zero::test::replicas_test
