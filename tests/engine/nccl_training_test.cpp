/// @file Trainings over groups that reach devices: the bits of the local transport's whatever the stage, whether everything is kept on
/// devices, whose memory then moves over an NCCL of threads, or on the host.
#include "tests/engine/bounded_training.h"
#include "tests/engine/device_memory.h"
#include "tests/engine/flipped_bits.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/group/nccl_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <array>

namespace zero::test::nccl_training_test {
namespace {

/// Runs body(group, local) on every rank: a group that reaches devices, and one over the local transport alone.
template <class Body>
void run_nccl_world(int64_t size, Body &&body) {
  const std::string meeting = nccl_meeting();
  run_world(size, [&](const std::shared_ptr<Group> &local) {
    std::shared_ptr<Group> group;
    const Status status = connect_nccl(meeting, local->rank(), size, &group, {.staging_nbytes = 65'536});
    EXPECT_TRUE(status.ok()) << status.text();
    if (group != nullptr) body(group, local);
  });
}

class TrainingOverNccl : public testing::Test {
 protected:
  void SetUp() override {
    fake_nccl_reset();
    objects_ = emulated_objects();
  }
  void TearDown() override { expect_nothing_left(objects_); }

 private:
  int64_t objects_ = 0;
};

/// In all stages, in manners by chance, with everything on devices.
void expect_bits_of_the_local_transport(const Model &model, uint64_t seed) {
  const int64_t moved = fake_nccl_moved();
  run_nccl_world(model.ranks, [&](const std::shared_ptr<Group> &group, const std::shared_ptr<Group> &local) {
    const DeviceMemory memory(group->rank() % kDevices);
    const Outcome expected = train(local, model, Manner{});
    for (int64_t stage = 0; stage < 4; ++stage) {
      Manner manner = random_manner(seed * 10 + static_cast<uint64_t>(stage), model.ranks);
      manner.stage = stage;
      manner.one_copy = false;
      manner.kept_there = true;
      manner.remote = &memory;
      expect_same(expected, train(group, model, manner), model, manner, group->rank());
    }
  });
  EXPECT_EQ(fake_nccl_moved() > moved, model.ranks > 1);
}

TEST_F(TrainingOverNccl, TrainingsOnDevicesHaveTheBitsOfTheLocalTransport) {
  const int64_t models = full_tests() ? 60 : few_tests() ? 2 : 4;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 91'001;
    const int64_t ranks = std::array{2, 4, 3, 1}[static_cast<size_t>(i % 4)];
    expect_bits_of_the_local_transport(random_model_for_devices(seed, ranks), seed);
  }
}

TEST_F(TrainingOverNccl, WeightedGradientsAreThoseOfTheContractToTheBit) {
  int64_t number = 0;
  for (const Model &model : weighted_models(3, DType::f16)) {
    Manner manner = random_manner(static_cast<uint64_t>(++number), model.ranks);
    manner.stage = number % 4;
    manner.one_copy = false;
    manner.kept_there = true;
    run_nccl_world(model.ranks, [&](const std::shared_ptr<Group> &group, const std::shared_ptr<Group> &) {
      const DeviceMemory memory(group->rank() % kDevices);
      Manner mine = manner;
      mine.remote = &memory;
      EXPECT_EQ(wrong_gradients(group, model, mine), 0) << model.text() << "\n" << manner.text();
    });
  }
}

TEST_F(TrainingOverNccl, UpdatesOfWholeTensorsHaveTheBitsOfTheLocalTransport) {
  for (const char *algorithm : {"lamb", "muon"}) {
    Model model = random_model_for_devices(91'300, 3);
    model.algorithm = algorithm;
    model.counts.push_back(3000);
    expect_bits_of_the_local_transport(model, 91'300);
  }
}

TEST_F(TrainingOverNccl, BitsThatAreFlippedOnDevicesAreFound) {
  Flips shared;
  int64_t number = 0;
  for (const Recipe &recipe : flipped_recipes()) {
    const int64_t stage = ++number % 4;
    Trial trial = make_trial(recipe, stage, 3, number);
    trial.flips = 4;
    run_nccl_world(3, [&](const std::shared_ptr<Group> &group, const std::shared_ptr<Group> & /*local*/) {
      const DeviceMemory memory(group->rank() % kDevices);
      Trial mine = trial;
      mine.manner.kept_there = true;
      mine.manner.remote = &memory;
      flip_bits(group, mine, shared);
    });
  }
  EXPECT_GT(shared.flips, 12);
  EXPECT_EQ(shared.missed, 0);
}

/// They move over the transport underneath, as if there were no devices.
TEST_F(TrainingOverNccl, TrainingsOnTheHostHaveTheBitsOfTheLocalTransport) {
  const int64_t ranks = 2;
  const Model model = random_model_for_devices(91'500, ranks);
  const int64_t moved = fake_nccl_moved();
  run_nccl_world(ranks, [&](const std::shared_ptr<Group> &group, const std::shared_ptr<Group> &local) {
    const Outcome expected = train(local, model, Manner{});
    for (int64_t stage = 0; stage < 4; ++stage) {
      Manner manner;
      manner.stage = stage;
      expect_same(expected, train(group, model, manner), model, manner, group->rank());
    }
  });
  EXPECT_EQ(fake_nccl_moved(), moved);
}

}  // namespace
}  // namespace zero::test::nccl_training_test
