/// @file Saves of optimizers that keep everything on a device: they hold the bits that the host would, and are loaded by either.
#include "tests/engine/device_memory.h"
#include "tests/engine/saved_runs.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

namespace zero::test::device_save_test {
namespace {

const DeviceMemory kDevice(0);

using SavedFromDevice = DeviceTest;

Manner on_device(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  manner.remote = &kDevice;
  manner.kept_there = true;
  return manner;
}

Manner on_host(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  return manner;
}

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 70'000};
  return model;
}

std::vector<std::byte> loaded(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, const std::string &folder,
                              bool goes_on) {
  const auto optimizer = make_optimizer(group, model, manner);
  expect_ok(load(*checkpoint_of(optimizer), folder), "load");
  if (goes_on) (void)train_step(*optimizer, model, manner, 2);
  return read_slots(*optimizer, model);
}

/// `background`: a step follows before the files are written.
void expect_saved(int64_t ranks, int64_t stage, bool background) {
  const SaveFolder folder;
  const Model model = model_of(ranks);
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const Manner manner = on_device(stage);
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < 2; ++step) (void)train_step(*optimizer, model, manner, step);
    const std::vector<std::byte> at_save = read_slots(*optimizer, model);
    const auto checkpoint = checkpoint_of(optimizer);
    zero_checkpoint_result result{};
    std::shared_ptr<Operation> saving;
    if (background) {
      saving = begin_save(*checkpoint, folder.path(), &result);
    } else {
      expect_ok(save(*checkpoint, folder.path()), "save");
    }
    (void)train_step(*optimizer, model, manner, 2);
    const std::vector<std::byte> later = read_slots(*optimizer, model);
    if (background) expect_ok(checkpoint->queue()->wait(saving), "save_async");
    EXPECT_EQ(loaded(group, model, on_host((stage + 1) % 4), folder.path(), false), at_save);
    EXPECT_EQ(loaded(group, model, on_host(stage), folder.path(), true), later);
    EXPECT_EQ(loaded(group, model, on_device(3 - stage), folder.path(), true), later);
  });
}

TEST_F(SavedFromDevice, HasTheBitsOfTheHost) {
  for (const int64_t ranks : {1, 3}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      expect_saved(ranks, stage, false);
      expect_saved(ranks, stage, true);
    }
  }
}

TEST_F(SavedFromDevice, LazySnapshotsAreRefused) {
  const SaveFolder folder;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model_of(1), on_device(0));
    const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SNAPSHOT, ZERO_SNAPSHOT_LAZY}});
    zero_checkpoint_result result{};
    const Status status = checkpoint->queue()->wait(begin_save(*checkpoint, folder.path(), &result));
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
    EXPECT_TRUE(contains(status, "ZERO_SNAPSHOT_COPY")) << status.text();
    expect_ok(save(*checkpoint, folder.path()), "save");
  });
}

}  // namespace
}  // namespace zero::test::device_save_test
