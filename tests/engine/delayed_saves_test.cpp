/// @file Delayed updates: saves hold the gradients that wait, and a resumed run has the bits of one that never stopped.
#include "tests/engine/delayed_model.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/saved_runs.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace zero::test::delayed_saves_test {
namespace {

constexpr int64_t kSaved = 4;
constexpr int64_t kSteps = 7;

Manner delayed_manner(int64_t stage, bool overlap = true) {
  Manner manner;
  manner.stage = stage;
  manner.overlap = overlap;
  manner.bucket_nbytes = 4096;
  return manner;
}

/// The same bits in every world.
Model model_of(DType dtype) {
  Model model = delayed(saved_model());
  model.recipe.dtype = dtype;
  model.recipe.clip_norm = 0.25;
  model.recipe.frozen_every = 3;
  return model;
}

/// One rank's gradients of a step, of which the first element overflows.
void overflow_alone(Optimizer &optimizer, const Model &model) {
  std::vector<float> values(static_cast<size_t>(model.counts[0]));
  values[0] = std::numeric_limits<float>::infinity();
  const std::vector<std::byte> grad = encode(values, model.grad_dtype(0));
  if (optimizer.group()->rank() == 0) expect_ok(optimizer.grad_ready(0, grad.data(), 0, model.counts[0]), "grad_ready");
  expect_ok(run_task(optimizer, optimizer.step(nullptr)), "step");
}

std::vector<std::byte> undisturbed(const Model &model) {
  std::vector<std::byte> slots;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, delayed_manner(1));
    step_alone(*optimizer, model, 0, kSteps);
    slots = read_slots(*optimizer, model);
  });
  return slots;
}

void save_after(const std::string &folder, const Model &model, int64_t ranks, int64_t stage) {
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, delayed_manner(stage));
    step_alone(*optimizer, model, 0, kSaved);
    expect_ok(save(*checkpoint_of(optimizer), folder), "save");
  });
}

TEST(DelayedSaves, AResumedRunHasTheBitsOfOneThatNeverStopped) {
  Every every(5);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Model model = model_of(dtype);
    const std::vector<std::byte> expected = undisturbed(model);
    for (const int64_t ranks : {1, 2, 3}) {
      for (const int64_t stage : {0, 1}) {
        const SaveFolder folder;
        save_after(folder.path(), model, ranks, stage);
        for (const int64_t others : {1, 3, 4}) {
          for (int64_t at = 0; at < 4; ++at) {
            if (!every.next()) continue;
            run_world(others, [&](const std::shared_ptr<Group> &group) {
              const auto optimizer = begun_optimizer(group, model, delayed_manner(at % 2, at / 2 == 1));
              step_alone(*optimizer, model, 20, 22);  // gradients of its own wait
              const auto checkpoint = checkpoint_of(optimizer);
              expect_ok(load(*checkpoint, folder.path()), "load");
              EXPECT_EQ(checkpoint->skipped(), "");
              step_alone(*optimizer, model, kSaved, kSteps);
              EXPECT_EQ(read_slots(*optimizer, model), expected)
                  << ranks << " ranks, then " << others << ", stage " << stage << " manner " << at;
            });
          }
        }
      }
    }
  }
}

TEST(DelayedSaves, AnOverflowThatWaitsIsSkippedByTheResumedRun) {
  const Model model = model_of(DType::f32);
  for (const int64_t ranks : {1, 2}) {
    const SaveFolder folder;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, delayed_manner(1));
      step_alone(*optimizer, model, 0, kSaved);
      overflow_alone(*optimizer, model);
      expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
      const auto loaded = begun_optimizer(group, model, delayed_manner(0));
      expect_ok(load(*checkpoint_of(loaded), folder.path()), "load");
      for (const auto &each : {optimizer, loaded}) {
        zero_step_result result{};
        expect_ok(run_task(*each, each->step(&result)), "step");
        EXPECT_EQ(result.skipped, 1);
        EXPECT_EQ(result.step, kSaved);
      }
      EXPECT_EQ(read_slots(*loaded, model), read_slots(*optimizer, model));
    });
  }
}

/// A step that skips overwrites the slots all the same, and waits for the save that reads them.
TEST(DelayedSaves, AsynchronousSavesHoldTheGradientsOfTheirMoment) {
  const Model model = model_of(DType::f32);
  for (const int64_t snapshot : {ZERO_SNAPSHOT_COPY + 0, ZERO_SNAPSHOT_LAZY + 0}) {
    const SaveFolder folder;
    std::vector<std::byte> expected;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, delayed_manner(1));
      step_alone(*optimizer, model, 0, kSaved);
      overflow_alone(*optimizer, model);
      const auto checkpoint =
          checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SNAPSHOT, snapshot}, {ZERO_KEY_CHECKPOINT_STAGING_BYTES, 65'536}});
      zero_checkpoint_result result{};
      const auto operation = begin_save(*checkpoint, folder.path(), &result);
      step_alone(*optimizer, model, kSaved, kSteps);
      expect_ok(checkpoint->queue()->wait(operation), "save_async");
      const std::vector<std::byte> slots = read_slots(*optimizer, model);
      if (group->rank() == 0) expected = slots;
    });
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, delayed_manner(1));
      expect_ok(load(*checkpoint_of(optimizer), folder.path()), "load");
      step_alone(*optimizer, model, kSaved, kSteps);
      EXPECT_EQ(read_slots(*optimizer, model), expected) << snapshot;
    });
  }
}

TEST(DelayedSaves, GradientsWithoutAPlaceAreDroppedAndListed) {
  const Model late = model_of(DType::f32);
  Model plain = late;
  plain.recipe.keys.clear();
  const SaveFolder of_late;
  const SaveFolder of_plain;
  save_after(of_late.path(), late, 2, 1);
  save_after(of_plain.path(), plain, 2, 1);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto without = begun_optimizer(group, plain, delayed_manner(1));
    const auto checkpoint = checkpoint_of(without);
    expect_ok(load(*checkpoint, of_late.path()), "load");
    EXPECT_NE(checkpoint->skipped().find("dropped \"p0:gradient\""), std::string::npos) << checkpoint->skipped();
    EXPECT_EQ(train_step(*without, plain, delayed_manner(1), 9).step, kSaved);
    // Gradients of its own that wait are dropped too.
    const auto with = begun_optimizer(group, late, delayed_manner(1));
    step_alone(*with, late, 20, 22);
    expect_ok(load(*checkpoint_of(with), of_plain.path()), "load");
    EXPECT_EQ(train_step(*with, late, delayed_manner(1), 9).step, kSaved);
    EXPECT_EQ(train_step(*with, late, delayed_manner(1), 10).step, kSaved + 1);
  });
}

TEST(DelayedSaves, UntouchedParametersLeaveTheGradientsOut) {
  Model model = delayed(saved_model());
  model.recipe.untouched = true;
  const SaveFolder folder;
  save_after(folder.path(), model, 2, 1);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, delayed_manner(1));
    expect_ok(load(*checkpoint_of(optimizer), folder.path()), "load");
    EXPECT_EQ(train_step(*optimizer, model, delayed_manner(1), 9).step, kSaved - 1);
    EXPECT_EQ(train_step(*optimizer, model, delayed_manner(1), 10).step, kSaved);
  });
}

}  // namespace
}  // namespace zero::test::delayed_saves_test
