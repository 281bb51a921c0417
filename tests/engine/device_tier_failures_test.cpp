/// @file Devices that keep an optimizer's memory and fail, are full, apart or another rank's alone, emulated: errors that name the cause on
/// every rank, nothing left behind, and the same bits wherever contributions pass.
#include "engine/compute/device_kernels.h"
#include "tests/engine/device_memory.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/group/process_ranks.h"
#include "tests/memory/emulated_cuda.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>

namespace zero::test::device_tier_failures_test {
namespace {

const DeviceMemory kDevices[] = {DeviceMemory(0), DeviceMemory(1)};

Manner kept_on(int64_t device, int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 65'536;
  manner.remote = &kDevices[device];
  manner.kept_there = true;
  return manner;
}

Model model_of(int64_t ranks, bool coded = false) {
  Model model;
  model.ranks = ranks;
  model.recipe.coded = coded;
  model.counts = {3000, 17, 0, 1024, 30'000};
  return model;
}

/// Bits of the host with ranks on two devices.
void expect_bits_of_the_host(const std::shared_ptr<Group> &group, const Model &model) {
  Manner host;
  host.bucket_nbytes = 65'536;
  const Outcome expected = train(group, model, host);
  for (int64_t stage = 0; stage < 4; ++stage) {
    Manner manner = kept_on(group->rank() % 2, stage);
    // Another order on each rank, so that pools grow by memory that others do not reach.
    manner.ready_seed = static_cast<uint64_t>(stage + 1);
    EXPECT_EQ(differing(expected, train(group, model, manner)), 0) << "stage " << stage;
  }
}

// Processes are forked before anything of the library has run here.
TEST(DevicesOfSeveralProcesses, ExchangeThroughTheHost) {
  const std::string name = meeting_name();
  const auto results = run_process_ranks(
      3,
      [&](int64_t rank, int) {
        const std::shared_ptr<Group> group = connect_rank(name, rank, 3, 1);
        if (group == nullptr) return 1;
        for (const bool coded : {false, true}) expect_bits_of_the_host(group, model_of(3, coded));
        return testing::Test::HasFailure() ? 1 : 0;
      },
      120'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(DevicesOfOneProcess, ReachEachOthersMemory) {
  for (const bool coded : {false, true}) {
    run_world(3, [=](const std::shared_ptr<Group> &group) { expect_bits_of_the_host(group, model_of(3, coded)); });
  }
}

TEST(DevicesThatAreApart, ExchangeThroughTheHost) {
  emulated_apart(1);
  for (const bool coded : {false, true}) {
    run_world(3, [=](const std::shared_ptr<Group> &group) { expect_bits_of_the_host(group, model_of(3, coded)); });
  }
  emulated_apart(0);
}

TEST(FullDevices, AreAnErrorOfSealOnAllRanks) {
  const int64_t before = emulated_objects();
  run_world(2, [](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, make_config(model_of(2), kept_on(0, 1)), &optimizer).ok());
    // Rank 0's parameters are larger than a piece may be.
    const int64_t shape = 3'000'000;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &shape, 1, &id).ok());
    emulated_largest(8 << 20);
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_OUT_OF_MEMORY) << status.text();
    EXPECT_NE(std::strstr(status.text(), "device 0 has no 12001280 bytes"), nullptr) << status.text();
    MemoryUse use{};
    EXPECT_TRUE(optimizer->memory(ZERO_MEMORY_TOTAL, &use).ok());
    EXPECT_EQ(use.now_nbytes, 0);
    // The same optimizer can be sealed once there is room.
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
    emulated_largest(-1);
    expect_ok(group->queue()->run(barrier(*group)), "barrier");
    EXPECT_TRUE(optimizer->seal_queue()->run(optimizer->seal()).ok());
  });
  EXPECT_EQ(emulated_objects(), before);
}

/// A training in which errors are looked at by the caller; the first one. `coded`: each step is verified too.
Status train_once(const std::shared_ptr<Group> &group, int64_t stage, bool coded, const char *algorithm) {
  const int64_t shape[] = {60, 50};
  const int64_t count = 3000;
  std::vector<float> values(static_cast<size_t>(count), 1);
  std::shared_ptr<Optimizer> optimizer;
  int64_t id = 0;
  void *data = nullptr;
  zero_verify_result result{};
  Manner manner = kept_on(0, stage);
  manner.verify_every = coded ? 1 : 0;
  Config config = make_config(model_of(group->size(), coded), manner);
  (void)config.set_f64(ZERO_KEY_CLIP_NORM, 1);
  (void)config.set_str(ZERO_KEY_ALGORITHM, algorithm);
  ZERO_TRY(Optimizer::create(group, config, &optimizer));
  ZERO_TRY(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, shape, 2, &id));
  ZERO_TRY(optimizer->seal_queue()->run(optimizer->seal()));
  ZERO_TRY(optimizer->init_param(id, ZERO_INITIALISER_UNIFORM, -1, 1, 1));
  ZERO_TRY(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)));
  for (int64_t step = 0; step < 2; ++step) {
    ZERO_TRY(run_task(*optimizer, optimizer->param_acquire(id, nullptr, 0, &data)));
    ZERO_TRY(optimizer->param_release(id));
    ZERO_TRY(optimizer->grad_ready(id, values.data(), 0, count));
    ZERO_TRY(run_task(*optimizer, optimizer->step(nullptr)));
    ZERO_TRY(run_task(*optimizer, optimizer->verify(&result)));
  }
  EXPECT_EQ(result.found, ZERO_FINDING_NONE);
  return run_task(*optimizer, optimizer->read(id, ZERO_SLOT_PARAM, 0, values.data(), count));
}

/// From one call of the module on, all fail; the next time from a later one.
void expect_errors(int64_t ranks, int64_t stage, bool coded, int64_t stride, const char *algorithm = "adamw") {
  const int64_t before = emulated_objects();
  std::atomic<int64_t> good{0};
  int64_t failures = 0;
  for (; good < ranks; failures += stride) {
    good = 0;
    emulated_fail_from(failures);
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const Status status = train_once(group, stage, coded, algorithm);
      if (status.ok()) ++good;
      EXPECT_NE(status.code(), ZERO_E_TIMEOUT) << "call " << failures << ": " << status.text();
      EXPECT_NE(status.code(), ZERO_E_INTERNAL) << "call " << failures << ": " << status.text();
      const bool says_why = status.ok() || std::strstr(status.text(), "launch failure") != nullptr;
      EXPECT_TRUE(says_why || status.code() == ZERO_E_PEER_FAILED || status.code() == ZERO_E_PEER_LEFT)
          << "call " << failures << ": " << status.text();
    });
    emulated_fail_from(-1);
    EXPECT_EQ(emulated_objects(), before) << "call " << failures;
    ASSERT_LT(failures, 100'000);
  }
  EXPECT_GT(failures, 100);
}

TEST(FailingDevices, AreErrorsOfEveryCall) {
  emulated_late(0);
  for (const bool coded : {false, true}) {
    for (int64_t stage = 0; stage < 4; ++stage) expect_errors(1, stage, coded, 1);
  }
}

TEST(FailingDevices, AreErrorsOfUpdatesOfWholeTensors) {
  emulated_late(0);
  for (const char *algorithm : {"lamb", "muon"}) {
    expect_errors(1, 1, false, 1, algorithm);
    expect_errors(2, 1, false, full_tests() ? 1 : 3, algorithm);
  }
}

/// The table that is there may name memory that is gone.
TEST(FailingDevices, NothingIsLaunchedWhereWhatIsToBeDoneWasNotSent) {
  std::unique_ptr<Device> device;
  ASSERT_TRUE(Device::open(caller_module(), 0, &device).ok());
  ASSERT_TRUE(device->allocate().ok());
  const AllocatorHook hook{};
  Accounting accounting;
  DeviceKernels there(*device);
  ASSERT_TRUE(there.allocate({&hook, &accounting, false, device.get()}, 0).ok());
  UpdateJob job{.algorithm = kernels::find_algorithm("sgd")};
  const std::span<const UpdateJob> jobs(&job, 1);
  ASSERT_TRUE(there.prepare(jobs).ok());
  float value = 0;
  emulated_fail_from(0);
  there.clear(&value, sizeof value);
  emulated_fail_from(-1);
  const int64_t before = emulated_launches();
  there.update(jobs);
  EXPECT_EQ(emulated_launches(), before);
  EXPECT_EQ(there.status().code(), ZERO_E_DEVICE_FAILED);
}

TEST(SealedDevices, AreWhatCallsOnTheirOrderNeed) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Model model{.counts = {100}};
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, make_config(model, kept_on(0, 1)), &optimizer).ok());
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "p", ZERO_DTYPE_F32, model.counts.data(), 1, &id).ok());
    float value = 0;
    const auto too_early = [&](Task task) { EXPECT_EQ(run_task(*optimizer, std::move(task)).code(), ZERO_E_STATE); };
    too_early(optimizer->read(id, ZERO_SLOT_PARAM, 0, &value, 1));
    too_early(optimizer->write(id, ZERO_SLOT_PARAM, 0, &value, 1));
    too_early(optimizer->step(nullptr));
    too_early(optimizer->reduce(nullptr));
    too_early(optimizer->apply());
    too_early(optimizer->gather());
    expect_ok(run_task(*optimizer, optimizer->seal()), "seal");
    begin_training(*optimizer, model, kept_on(0, 1));
    train_step(*optimizer, model, kept_on(0, 1), 0);
  });
}

/// Nothing is under way then to memory that is given back.
TEST(FailingDevices, AreWhatInitialisersFindInACapture) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Model model{.counts = {30'000}};
    const auto optimizer = begun_optimizer(group, model, kept_on(0, 1));
    void *stream = caller_stream_create(0);
    caller_capture_begin(stream);
    EXPECT_EQ(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 1, 0, 0).code(), ZERO_E_DEVICE_FAILED);
    if (void *graph = caller_capture_end(stream)) caller_graph_destroy(graph);
    caller_stream_destroy(stream);
  });
}

TEST(FailingDevices, ReachEveryRank) {
  emulated_late(0);
  for (const bool coded : {false, true}) {
    for (int64_t stage = 0; stage < 4; ++stage) expect_errors(2, stage, coded, full_tests() ? 1 : 3);
  }
}

}  // namespace
}  // namespace zero::test::device_tier_failures_test
