/// @file Saves of replicas: of any number of them for any other, and with a set of states for each that makes steps of its own.
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace zero::test::replica_saves_test {
namespace {

struct World {
  int64_t ranks;
  int64_t replica_ranks;
  int64_t stage;
};

Manner manner_of(const World &world) {
  Manner manner;
  manner.stage = world.stage;
  manner.bucket_nbytes = 4096;
  manner.source = ZERO_SOURCE_SHARDS;
  manner.replica_ranks = world.replica_ranks;
  return manner;
}

Model in_world(Model model, const World &world) {
  model.ranks = world.ranks;
  return model;
}

constexpr int64_t kSavedSteps = 4;
constexpr int64_t kMoreSteps = 4;

std::vector<std::byte> run_undisturbed(const Model &model) {
  std::vector<std::byte> ended;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const World world{1, 1, 0};
    const auto optimizer = begun_optimizer(group, in_world(model, world), manner_of(world));
    step_alone(*optimizer, model, 0, kSavedSteps + kMoreSteps);
    ended = read_slots(*optimizer, model);
  });
  return ended;
}

TEST(ReplicaSaves, OfReplicasThatMakeEveryStepTogetherAreThoseOfOneGroup) {
  const Model model = saved_model();
  const std::vector<std::byte> expected = run_undisturbed(model);
  constexpr std::array<World, 5> kWorlds = {{{4, 2, 1}, {4, 1, 3}, {2, 2, 2}, {6, 2, 0}, {8, 4, 3}}};
  for (const World &from : kWorlds) {
    const SaveFolder folder;
    run_world(from.ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, in_world(model, from), manner_of(from));
      step_alone(*optimizer, model, 0, kSavedSteps);
      expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    });
    for (const World &to : kWorlds) {
      run_world(to.ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = make_optimizer(group, in_world(model, to), manner_of(to));
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
        EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0);
        expect_same_on_all_ranks(*optimizer);
        step_alone(*optimizer, model, kSavedSteps, kSavedSteps + kMoreSteps);
        EXPECT_EQ(read_slots(*optimizer, model), expected) << "from " << from.ranks << " to " << to.ranks << " rank " << group->rank();
      });
    }
  }
}

/// Replicas of two ranks that meet after every second step. One of them skips a step, so that their counts differ.
Model local_model() {
  Model model;
  model.ranks = 4;
  model.counts = {3000, 17, 0, 1024, 1, 257};
  model.recipe.replica_ranks = 2;
  model.recipe.sync_period = 2;
  model.recipe.outer_lr = 0.7;
  model.recipe.outer_momentum = 0.9;
  model.recipe.average = true;
  model.recipe.overflow_step = 1;
  model.recipe.loss_scale = 4;
  return model;
}

TEST(ReplicaSaves, OfStepsOfTheirOwnGoOnWithTheBitsOfTheUndisturbedRun) {
  const Model model = local_model();
  for (int64_t from = 0; from < 4; ++from) {
    const Manner manner = manner_of({4, 0, from});
    const SaveFolder folder;
    std::mutex mutex;
    std::map<int64_t, std::vector<std::byte>> ended;
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_steps(*optimizer, model, manner, 0, kSavedSteps);
      expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
      train_steps(*optimizer, model, manner, kSavedSteps, kSavedSteps + kMoreSteps);
      std::vector<std::byte> slots = read_slots(*optimizer, model);
      const std::lock_guard lock(mutex);
      ended[group->rank()] = std::move(slots);
    });
    for (int64_t to = 0; to < 4; ++to) {
      run_world(4, [&](const std::shared_ptr<Group> &group) {
        const Manner other = manner_of({4, 0, to});
        const auto optimizer = make_optimizer(group, model, other);
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
        EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0);
        int64_t applied = 0;
        EXPECT_TRUE(optimizer->get_i64(ZERO_KEY_STEP_COUNT, &applied).ok());
        EXPECT_EQ(applied, group->rank() < 2 ? kSavedSteps : kSavedSteps - 1);
        train_steps(*optimizer, model, other, kSavedSteps, kSavedSteps + kMoreSteps);
        EXPECT_EQ(read_slots(*optimizer, model), ended[group->rank()]) << "stage " << from << " to " << to << " rank " << group->rank();
      });
    }
  }
}

/// Two sets of states for one, two, and four replicas.
TEST(ReplicaSaves, AreLoadedByAnotherNumberOfReplicas) {
  Model model = local_model();
  const SaveFolder folder;
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const Manner manner = manner_of({4, 0, 1});
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, kSavedSteps);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
  });
  constexpr std::array<World, 4> kWorlds = {{{8, 2, 2}, {3, 1, 3}, {2, 1, 0}, {8, 4, 1}}};
  for (const World &to : kWorlds) {
    model.ranks = to.ranks;
    model.recipe.replica_ranks = to.replica_ranks;
    run_world(to.ranks, [&](const std::shared_ptr<Group> &group) {
      const Manner manner = manner_of({to.ranks, 0, to.stage});
      const auto optimizer = make_optimizer(group, model, manner);
      expect_ok(load(*checkpoint_of(optimizer), folder.path()), "load");
      expect_same_on_all_ranks(*optimizer);
      train_steps(*optimizer, model, manner, kSavedSteps, kSavedSteps + 2);
      expect_same_on_all_ranks(*optimizer);
    });
  }
}

TEST(ReplicaSaves, NeedReplicasThatAreTogether) {
  const Model model = local_model();
  const SaveFolder folder;
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const Manner manner = manner_of({4, 0, 1});
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, 1);
    const Status status = save(*checkpoint_of(optimizer), folder.path());
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_TRUE(contains(status, "zero_optimizer_sync comes before")) << status.text();
    expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
  });
  EXPECT_EQ(folder.saves().size(), 1U);
}

/// A round is not enough. What is saved after a full synchronisation goes on with the bits of the run that made one there too.
TEST(ReplicaSaves, OfRoundsWithNeighboursNeedAFullSynchronisation) {
  Model model = local_model();
  model.recipe.outer_lr = 1;
  model.recipe.outer_momentum = 0;
  model.recipe.ring = true;
  for (int64_t from = 0; from < 4; ++from) {
    const Manner manner = manner_of({4, 0, from});
    const Manner other = manner_of({4, 0, 3 - from});
    const SaveFolder folder;
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_steps(*optimizer, model, manner, 0, kSavedSteps);
      const Status status = save(*checkpoint_of(optimizer), folder.path());
      EXPECT_EQ(status.code(), ZERO_E_STATE);
      EXPECT_TRUE(contains(status, "zero_optimizer_sync comes before")) << status.text();
      expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
      expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
      train_steps(*optimizer, model, manner, kSavedSteps, kSavedSteps + kMoreSteps);
      const std::vector<std::byte> expected = read_slots(*optimizer, model);
      const auto resumed = make_optimizer(group, model, other);
      expect_ok(load(*checkpoint_of(resumed), folder.path()), "load");
      train_steps(*resumed, model, other, kSavedSteps, kSavedSteps + kMoreSteps);
      EXPECT_EQ(read_slots(*resumed, model), expected) << "stage " << from << " rank " << group->rank();
    });
  }
}

/// The rate and momentum of a save are those of another outer step.
TEST(ReplicaSaves, OfAnOuterStepAreLoadedForRoundsWithNeighbours) {
  Model model = local_model();
  const Manner manner = manner_of({4, 0, 2});
  const SaveFolder folder;
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, kSavedSteps);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
  });
  model.recipe.outer_lr = 1;
  model.recipe.outer_momentum = 0;
  model.recipe.ring = true;
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    expect_ok(load(*checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_EXTRA, 1}}), folder.path()), "load");  // without outer moments
    double rate = 0;
    EXPECT_TRUE(optimizer->get_f64(0, ZERO_KEY_OUTER_LR, &rate).ok());
    EXPECT_EQ(rate, 1);
    train_steps(*optimizer, model, manner, kSavedSteps, kSavedSteps + 2);
    expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
    expect_same_on_all_ranks(*optimizer);
  });
}

}  // namespace
}  // namespace zero::test::replica_saves_test
