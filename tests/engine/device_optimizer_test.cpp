/// @file Optimizers whose caller keeps gradients and parameters on a device: the bits of host memory whatever the stage and recipe, and
/// what becomes of memory, streams and failures.
#include "tests/algorithms.h"
#include "tests/engine/bounded_training.h"
#include "tests/engine/device_memory.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace zero::test::device_optimizer_test {
namespace {

const DeviceMemory kDevice(0);

using OnDevice = DeviceTest;

TEST(DeviceModule, TellsWhetherThereIsADevice) {
  std::unique_ptr<Device> device;
  const Status status = Device::open(caller_module(), 0, &device);
  const bool missing = *caller_missing() != '\0';
  EXPECT_EQ(status.code(), missing ? ZERO_E_DEVICE : ZERO_OK) << status.text();
  EXPECT_NE(std::strstr(status.text(), caller_missing()), nullptr) << status.text();
}

Manner on_device(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  manner.caller_memory = true;
  manner.remote = &kDevice;
  return manner;
}

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 70'000};
  return model;
}

TEST_F(OnDevice, TrainingsHaveTheBitsOfHostMemory) {
  const int64_t models = full_tests() ? 200 : few_tests() ? 4 : 16;
  const Names names = all_names();
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 70'001;
    const int64_t ranks = std::array{1, 2, 4, 3}[static_cast<size_t>(i % 4)];
    Model model = random_model(seed, ranks, 1 << 13);
    model.counts.resize(std::min<size_t>(model.counts.size(), 8));
    model.algorithm = names[names.size() - 1 - static_cast<size_t>(i) % names.size()];  // the last first: few models see more kinds
    model.recipe = random_recipe(seed, model.algorithm);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const Outcome expected = train(group, model, Manner{});
      for (int64_t stage = 0; stage < 4; ++stage) {
        Manner manner = random_manner(seed * 10 + static_cast<uint64_t>(stage), ranks);
        manner.stage = stage;
        manner.caller_memory = true;
        manner.remote = &kDevice;
        Outcome outcome = train(group, model, manner);
        if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
        const int64_t different = differing(expected, outcome) + (expected.unfilled != outcome.unfilled ? 1 : 0);
        EXPECT_EQ(different, 0) << "rank " << group->rank() << "\n" << model.text() << "\n" << manner.text();
      }
    });
  }
}

/// Whether the optimizer's own memory lies on the device too, or on the host.
TEST_F(OnDevice, WeightedGradientsAreThoseOfTheContractToTheBit) {
  for (const int64_t ranks : {1, 2, 3}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      int64_t number = 0;
      for (const Model &model : weighted_models(ranks, dtype)) {
        Manner manner = random_manner(static_cast<uint64_t>(++number), ranks);
        manner.stage = number % 4;
        manner.one_copy = false;
        manner.remote = &kDevice;
        for (const bool kept : {false, true}) {
          manner.kept_there = kept;
          manner.caller_memory = manner.caller_memory || !kept;
          run_world(ranks, [&](const std::shared_ptr<Group> &group) {
            EXPECT_EQ(wrong_gradients(group, model, manner), 0) << model.text() << "\n" << manner.text();
          });
        }
      }
    }
  }
}

TEST_F(OnDevice, TensorsOfManyPartsArrive) {
  Model model;
  model.ranks = 2;
  model.counts = {(5 << 20) / 4 + 3, 9};
  model.steps = 1;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Outcome expected = train(group, model, Manner{});
    for (const int64_t stage : {1, 3}) EXPECT_EQ(differing(expected, train(group, model, on_device(stage))), 0) << stage;
  });
}

TEST_F(OnDevice, MemoryOfTheHostIsTakenToo) {
  const Model model = model_of(1);
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, on_device(1));
    begin_training(*optimizer, model, on_device(1));
    std::vector<float> grad(3000, 1);
    std::vector<float> param(3000);
    void *data = nullptr;
    EXPECT_TRUE(optimizer->grad_ready(0, grad.data(), 0, 3000).ok());
    EXPECT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    EXPECT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, param.data(), 3000, &data)).ok());
    EXPECT_EQ(data, param.data());
    EXPECT_NE(param[0], 0);
  });
}

/// States of the host in a program that captures its own work: neither the capture nor the optimizer is lost.
TEST_F(OnDevice, CopiesBetweenHostAndDeviceAreNotCaptured) {
  const Model model = model_of(1);
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model, on_device(1));
    begin_training(*optimizer, model, on_device(1));
    const Lent lent(0, 3000 * 4);
    void *data = nullptr;
    caller_capture_begin(lent.stream);
    EXPECT_EQ(optimizer->grad_ready(0, lent.data, 0, 3000, lent.stream).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(*optimizer, optimizer->param_acquire(0, lent.data, 3000, &data, lent.stream)).code(), ZERO_E_STATE);
    void *graph = caller_capture_end(lent.stream);
    ASSERT_NE(graph, nullptr);
    caller_graph_destroy(graph);
    EXPECT_TRUE(optimizer->grad_ready(0, lent.data, 0, 3000, lent.stream).ok());
    EXPECT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
    EXPECT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, lent.data, 3000, &data, lent.stream)).ok());
    EXPECT_TRUE(optimizer->param_release(0).ok());
  });
}

TEST_F(OnDevice, StagingIsCountedAndDescribed) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Manner plain = on_device(2);
    plain.remote = nullptr;
    MemoryUse with{};
    MemoryUse without{};
    const auto optimizer = make_optimizer(group, model_of(2), on_device(2));
    EXPECT_TRUE(optimizer->memory(ZERO_MEMORY_STAGING, &with).ok());
    EXPECT_TRUE(make_optimizer(group, model_of(2), plain)->memory(ZERO_MEMORY_STAGING, &without).ok());
    EXPECT_EQ(with.now_nbytes - without.now_nbytes, 4 << 20);
    EXPECT_NE(optimizer->describe().find("device: 0 ("), std::string::npos) << optimizer->describe();
  });
}

TEST_F(OnDevice, SlotsAreReadThroughTheHost) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, model_of(1), on_device(1));
    const Lent lent(0, 3000 * 4);
    for (const bool writes : {false, true}) {
      const Status status = run_task(*optimizer, writes ? optimizer->write(0, ZERO_SLOT_PARAM, 0, lent.data, 3000)
                                                        : optimizer->read(0, ZERO_SLOT_PARAM, 0, lent.data, 3000));
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
      EXPECT_NE(std::strstr(status.text(), "data is memory of device 0"), nullptr) << status.text();
    }
  });
}

TEST_F(OnDevice, WithoutADeviceStreamsAreErrors) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    Manner plain = on_device(1);
    plain.remote = nullptr;
    const auto optimizer = make_optimizer(group, model_of(1), plain);
    const Lent lent(0, 4);
    const Status status = optimizer->check_stream(lent.stream);
    EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
    EXPECT_NE(std::strstr(status.text(), "ZERO_KEY_DEVICE"), nullptr) << status.text();
    EXPECT_TRUE(optimizer->check_stream(nullptr).ok());
    EXPECT_TRUE(make_optimizer(group, model_of(1), on_device(1))->check_stream(lent.stream).ok());
  });
}

}  // namespace
}  // namespace zero::test::device_optimizer_test
