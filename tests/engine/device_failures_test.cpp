/// @file Devices that fail under an optimizer, emulated: which calls say so, and that no rank waits for the one whose device is gone.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_cuda.h"

#include <gtest/gtest.h>

#include <cstring>

namespace zero::test::device_failures_test {
namespace {

/// Memory of the host that a device of its own is asked about.
class FailingDevice final : public RemoteMemory {
 public:
  explicit FailingDevice(int64_t device) : device_(device) {}
  void set(Config &config) const override {
    EXPECT_TRUE(config.set_i64(ZERO_KEY_DEVICE, device_).ok());
    EXPECT_TRUE(config.set_str(ZERO_KEY_CUDA_MODULE, caller_module()).ok());
  }
  void lend(const std::vector<std::byte> &bytes, const std::function<void(const void *, void *)> &give) const override {
    give(bytes.data(), nullptr);
  }
  std::vector<std::byte> collect(int64_t nbytes, const std::function<void(void *, void *)> &fill) const override {
    std::vector<std::byte> bytes(static_cast<size_t>(nbytes));
    fill(bytes.data(), nullptr);
    return bytes;
  }

 private:
  int64_t device_;
};

Model model_of(int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {3000, 500};
  return model;
}

Manner manner_of(const RemoteMemory &remote, int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.remote = &remote;
  return manner;
}

TEST(DeviceFailures, NoDeviceIsAnErrorOfCreate) {
  const FailingDevice missing(7);
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    const Status status = Optimizer::create(group, make_config(model_of(1), manner_of(missing, 1)), &optimizer);
    EXPECT_EQ(status.code(), ZERO_E_DEVICE);
    EXPECT_NE(std::strstr(status.text(), "ZERO_KEY_DEVICE is 7"), nullptr) << status.text();
    EXPECT_EQ(optimizer, nullptr);
  });
}

TEST(DeviceFailures, SealFailsOnAllRanksAndLeavesNothing) {
  const FailingDevice device(0);
  const int64_t before = emulated_objects();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Manner plain;
    plain.stage = 1;
    const Manner manner = group->rank() == 0 ? manner_of(device, 1) : plain;
    std::shared_ptr<Optimizer> optimizer;
    ASSERT_TRUE(Optimizer::create(group, make_config(model_of(2), manner), &optimizer).ok());
    const int64_t shape = 3000;
    int64_t id = 0;
    ASSERT_TRUE(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &shape, 1, &id).ok());
    if (group->rank() == 0) emulated_fail_from(0);
    const Status status = optimizer->seal_queue()->run(optimizer->seal());
    if (group->rank() == 0) emulated_fail_from(-1);
    EXPECT_EQ(status.code(), group->rank() == 0 ? ZERO_E_DEVICE : ZERO_E_PEER_FAILED) << status.text();
    const char *cause = group->rank() == 0 ? "launch failure" : "rank 0 failed in zero_optimizer_seal: ZERO_E_DEVICE";
    EXPECT_NE(std::strstr(status.text(), cause), nullptr) << status.text();
  });
  EXPECT_EQ(emulated_objects(), before);
}

/// Rank 0's device fails in `call`; rank 1 must learn of it from its next collective.
template <class Call>
void expect_all_lose(int64_t stage, Call &&call) {
  const FailingDevice device(0);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(2);
    Manner plain;
    plain.stage = stage;
    const Manner manner = group->rank() == 0 ? manner_of(device, stage) : plain;
    const auto optimizer = begun_optimizer(group, model, manner);
    if (group->rank() == 0) {
      void *memory = caller_alloc(0, 3000 * 4);
      emulated_fail_from(1);  // the address is found, copies fail
      const Status status = call(*optimizer, memory);
      emulated_fail_from(-1);
      caller_free(memory);
      EXPECT_EQ(status.code(), ZERO_E_DEVICE_FAILED) << status.text();
      EXPECT_NE(std::strstr(status.text(), "launch failure"), nullptr) << status.text();
      EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_DEVICE_FAILED);
      return;
    }
    const Status status = run_task(*optimizer, optimizer->step(nullptr));
    EXPECT_EQ(status.code(), ZERO_E_PEER_FAILED) << status.text();
    EXPECT_NE(std::strstr(status.text(), "device 0 failed"), nullptr) << status.text();
  });
}

TEST(DeviceFailures, AGradientThatCannotBeReadReachesEveryRank) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    expect_all_lose(stage, [](Optimizer &optimizer, void *memory) { return optimizer.grad_ready(0, memory, 0, 3000); });
  }
}

TEST(DeviceFailures, AParameterThatCannotBeWrittenReachesEveryRank) {
  expect_all_lose(1, [](Optimizer &optimizer, void *memory) {
    void *data = nullptr;
    return run_task(optimizer, optimizer.param_acquire(0, memory, 3000, &data));
  });
}

}  // namespace
}  // namespace zero::test::device_failures_test
