/// @file Residuals in saves: a run goes on with the bits of the one that never stopped, and what does not fit is dropped and told.
#include "tests/engine/carried_saves.h"
#include "tests/engine/low_rank_rule.h"
#include "tests/engine/sparse_rule.h"
#include "tests/forwarded_calls.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test::saved_residuals_test {
namespace {

using World = CodedWorld;
constexpr std::array<World, 4> kWorlds = {{{2, 1}, {4, 2}, {3, 1}, {6, 2}}};

Model model_of(const World &world, int64_t code) {
  Model model = coded_model(world, code);
  model.recipe.residual = true;
  return model;
}

/// Gradient descent, which keeps parameters and residuals alone.
Model descent(const World &world) {
  Model model = model_of(world, ZERO_CODE_I4);
  model.algorithm = "sgd";
  model.weight_decay = 0;
  return model;
}

/// With a skipped step, changes of the loss scale, steps in full and several micro-steps; saved in one manner, loaded in another.
TEST(SavedResiduals, GoOnWithTheBitsOfTheUndisturbedRun) {
  int64_t number = 0;
  for (const World &world : kWorlds) {
    for (const int64_t code : kCodes) {
      Model model = model_of(world, code);
      model.recipe.overflow_step = 2;
      model.recipe.loss_scale = 8;
      if (code == ZERO_CODE_F8) model.recipe.dtype = DType::bf16;
      if (code == ZERO_CODE_I8) model.recipe.flush_period = 4;
      if (code == ZERO_CODE_I8) model.recipe.clip_norm = 0.5;
      expect_saves_go_on_elsewhere(model, world, number++);
    }
  }
}

/// Cuts of more elements than are coded at once, whose results other ranks make in other buckets.
TEST(SavedResiduals, OfManyPiecesGoOnInOtherBuckets) {
  Every every(2);
  for (const World &world : {World{3, 1}, World{2, 1}}) {
    if (!every.next()) continue;
    Model model = descent(world);
    model.counts = {600'001, 5000, 17, 300'300};
    const std::array<Manner, 3> manners = {{manner_of(1, 1 << 26), manner_of(2, 4096), manner_of(0, 1 << 20)}};
    Ends expected;
    run_undisturbed(model, manners[0], 3, expected);
    for (const Manner &from : {manners[0], manners[1]}) {
      const std::vector<SaveFolder> folders(2);
      save_each_step(model, from, folders);
      for (const Manner &to : manners) {
        Ends ends;
        EXPECT_EQ(go_on(model, to, folders[1].path(), 2, 3, ends), "");
        EXPECT_TRUE(expected == ends) << "from " + from.text() + "\nto " + to.text() << "\n" << model.text();
      }
    }
  }
}

/// They go on as from a save that has no residuals, be it with fewer ranks or larger replicas.
TEST(SavedResiduals, AreDroppedByOtherWorldsAndWithoutTheKey) {
  const Model model = descent({4, 2});
  Model without = model;
  without.recipe.residual = false;
  const Manner manner = manner_of(2, 4096);
  const ThreeSaves saves(model, manner);
  const std::string folder = saves.last();
  const SaveFolder plain;
  EXPECT_EQ(save_again(without, manner, folder, plain.path()), dropped_residuals(model));
  for (const World &to : {World{2, 1}, World{4, 1}, World{6, 2}, World{8, 4}})
    expect_dropped(in_world(model, to), manner, folder, dropped_residuals(model), plain.path());
  expect_needed(model, manner, folder, plain.path());
}

TEST(SavedResiduals, AreNotInASaveAfterAStepInFull) {
  Model model = descent({4, 2});
  model.recipe.flush_period = 2;
  const std::vector<SaveFolder> folders(4);
  save_each_step(model, manner_of(1, 4096), folders);
  for (int64_t saved = 1; saved <= std::ssize(folders); ++saved) {
    Ends ends;
    EXPECT_EQ(go_on(in_world(model, {2, 1}), manner_of(1, 4096), folders[static_cast<size_t>(saved - 1)].path(), saved, saved + 1, ends),
              saved % 2 == 0 ? "" : dropped_residuals(model));
  }
}

/// Replicas part after two steps, of which the second is skipped, and are together again after the fourth.
TEST(SavedResiduals, OfASkippedLastCommonStepAreDropped) {
  Model model = descent({4, 2});
  model.recipe.sync_after = 2;
  model.recipe.sync_period = 2;
  model.recipe.overflow_step = 1;
  const Manner manner = manner_of(1, 4096);
  const SaveFolder folder;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_steps(*optimizer, model, manner, 0, 4);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
  });
  Ends ends;
  EXPECT_EQ(go_on(in_world(model, {2, 1}), manner, folder.path(), 4, 5, ends), "");
}

TEST(SavedResiduals, FollowTheLossScaleOfTheRunThatLoadsThem) {
  for (const World &world : kWorlds) expect_loss_scale_of_save_followed(descent(world), manner_of(2, 4096));
}

TEST(SavedResiduals, AreLeftOutWhereParametersAreLoadedAlone) {
  const World world = {4, 2};
  const Model model = descent(world);
  const Manner manner = manner_of(1, 4096);
  const std::vector<SaveFolder> folders(2);
  save_each_step(model, manner, folders);
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto fresh = make_optimizer(group, model, manner);
    const auto used = begun_optimizer(group, model, manner);
    train_steps(*used, model, manner, 0, 3);
    for (const auto &optimizer : {fresh, used}) {
      const auto checkpoint = checkpoint_of(optimizer);
      expect_ok(load(*checkpoint, folders.back().path(), ZERO_PART_PARAMS), "load");
      EXPECT_EQ(checkpoint->skipped(), "");
      train_steps(*optimizer, model, manner, 3, kCarriedSteps);
    }
    EXPECT_EQ(differing(read_slot(*fresh, model, ZERO_SLOT_PARAM), read_slot(*used, model, ZERO_SLOT_PARAM)), 0);
  });
}

/// Two optimizers of one checkpoint.
TEST(SavedResiduals, BelongToTheirOptimizer) {
  const World world = {4, 2};
  const Model first = descent(world);
  const Model second = model_of(world, ZERO_CODE_I8);
  const Manner manner = manner_of(1, 4096);
  Ends expected_first;
  Ends expected_second;
  run_undisturbed(first, manner, kCarriedSteps, expected_first);
  run_undisturbed(second, manner, kCarriedSteps, expected_second);
  const SaveFolder folder;
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    for (const bool saves : {true, false}) {
      const auto one = saves ? begun_optimizer(group, first, manner) : make_optimizer(group, first, manner);
      const auto two = saves ? begun_optimizer(group, second, manner) : make_optimizer(group, second, manner);
      Config config;
      std::shared_ptr<Checkpoint> checkpoint;
      expect_ok(Checkpoint::create(group, config, &checkpoint), "create");
      expect_ok(checkpoint->add_optimizer("one.", one), "add_optimizer");
      expect_ok(checkpoint->add_optimizer("two.", two), "add_optimizer");
      if (saves) {
        train_steps(*one, first, manner, 0, 3);
        train_steps(*two, second, manner, 0, 3);
        expect_ok(save(*checkpoint, folder.path()), "save");
        continue;
      }
      expect_ok(load(*checkpoint, folder.path()), "load");
      EXPECT_EQ(checkpoint->skipped(), "");
      train_steps(*one, first, manner, 3, kCarriedSteps);
      train_steps(*two, second, manner, 3, kCarriedSteps);
      EXPECT_EQ(read_slots(*one, first), expected_first.of(*one));
      EXPECT_EQ(read_slots(*two, second), expected_second.of(*two));
    }
  });
}

/// The last bytes of a state file, which are residuals.
TEST(SavedResiduals, DamageInThemIsFound) {
  const World world = {4, 2};
  const Model model = descent(world);
  const Manner manner = manner_of(1, 4096);
  const SaveFolder folder;
  Ends expected;
  run_undisturbed(model, manner, kCarriedSteps, expected);
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    for (int64_t step = 0; step < 3; ++step) {
      (void)train_step(*optimizer, model, manner, step);
      if (step > 0) expect_ok(save(*checkpoint, folder.path()), "save");
    }
  });
  const std::string newest = folder.path() + "/" + folder.saves().back();
  std::fstream file(newest + "/state-00003-of-00004.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-2, std::ios::end);
  const auto place = file.tellg();
  const int byte = file.get();
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    const Status status = load(*checkpoint, newest);
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
    EXPECT_TRUE(contains(status, "state-00003-of-00004.safetensors")) << status.text();
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint, folder.path(), ZERO_PART_ALL, &result), "load");
    EXPECT_EQ(result.fallback, 1);
    train_steps(*optimizer, model, manner, 2, kCarriedSteps);
    EXPECT_EQ(read_slots(*optimizer, model), expected.of(*optimizer));
  });
}

/// Writes nothing until so many have let go, or as long as a lazy save keeps steps waiting.
class HeldCalls final : public tests::ForwardedCalls {
 public:
  explicit HeldCalls(int64_t count) : held_(count) {}
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (held_.load() > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ForwardedCalls::write_at(file, data, nbytes, offset);
  }
  void let_go() { held_.fetch_sub(1); }

 private:
  std::atomic<int64_t> held_;
};

/// Also velocities and factors.
TEST(SavedResiduals, OfAnAsynchronousSaveAreThoseAtTheCall) {
  for (const Model &model : {model_of({4, 2}, ZERO_CODE_I4), sparse_model({4, 2}, {ZERO_CODE_TOP, 8, 0.9}), low_rank_model(4, 3)}) {
    Ends expected;
    run_undisturbed(model, manner_of(1, 4096), kCarriedSteps, expected);
    for (const int64_t snapshot : {ZERO_SNAPSHOT_COPY + 0, ZERO_SNAPSHOT_LAZY + 0}) {
      for (int64_t stage = 0; stage < 4; ++stage) {
        const Manner manner = manner_of(stage, 4096);
        const SaveFolder folder;
        HeldCalls calls(snapshot == ZERO_SNAPSHOT_COPY ? model.ranks : 0);
        {
          const FileCallsReplaced replaced(calls);
          run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
            const auto optimizer = begun_optimizer(group, model, manner);
            const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SNAPSHOT, snapshot}});
            train_steps(*optimizer, model, manner, 0, 2);
            zero_checkpoint_result result{};
            const std::shared_ptr<Operation> operation = begin_save(*checkpoint, folder.path(), &result);
            train_steps(*optimizer, model, manner, 2, 5);
            calls.let_go();
            expect_ok(checkpoint->queue()->wait(operation), "save_async");
            train_steps(*optimizer, model, manner, 5, kCarriedSteps);
            EXPECT_EQ(read_slots(*optimizer, model), expected.of(*optimizer));
          });
        }
        Ends ends;
        EXPECT_EQ(go_on(model, manner_of(3 - stage, 1024), folder.path(), 2, kCarriedSteps, ends), "");
        EXPECT_TRUE(expected == ends) << "snapshot " + std::to_string(snapshot) + " stage " + std::to_string(stage) << "\n" << model.text();
      }
    }
  }
}

/// The process is killed in one of its writes.
class DyingCalls final : public tests::ForwardedCalls {
 public:
  explicit DyingCalls(int64_t writes) : left_(writes) {}
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    if (left_.fetch_sub(1) == 1) (void)::kill(::getpid(), SIGKILL);
    return ForwardedCalls::write_at(file, data, nbytes, offset);
  }

 private:
  std::atomic<int64_t> left_;
};

void save_and_die(const Model &model, const Manner &manner, const std::string &folder, int64_t writes) {
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, manner);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(load(*checkpoint, folder), "load");
    train_steps(*optimizer, model, manner, 2, 4);
    static DyingCalls calls(writes);
    static const FileCallsReplaced replaced(calls);
    (void)save(*checkpoint, folder);
  });
  ::_exit(0);
}

TEST(SavedResiduals, AKilledSaveLeavesTheOneBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const World world = {2, 1};
  const Model model = descent(world);
  const Manner manner = manner_of(1, 4096);
  // Processes that are to die run this test from its beginning, and are told the folder.
  constexpr const char *kFolder = "ZERO_TEST_SAVED_RESIDUALS";
  const SaveFolder own;
  const bool first = std::getenv(kFolder) == nullptr;
  if (first) {
    ::setenv(kFolder, own.path().c_str(), 1);
    run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      train_steps(*optimizer, model, manner, 0, 2);
      expect_ok(save(*checkpoint_of(optimizer), own.path()), "save");
    });
  }
  const std::string folder = std::getenv(kFolder);
  for (const int64_t writes : {1, 2, 3, 4}) EXPECT_EXIT(save_and_die(model, manner, folder, writes), testing::KilledBySignal(SIGKILL), "");
  ::unsetenv(kFolder);
  Ends expected;
  Ends ends;
  run_undisturbed(model, manner, kCarriedSteps, expected);
  EXPECT_EQ(own.saves().size(), 1U);
  EXPECT_EQ(go_on(model, manner, own.path(), 2, kCarriedSteps, ends), "");
  EXPECT_TRUE(expected == ends) << model.text();
}

}  // namespace
}  // namespace zero::test::saved_residuals_test
