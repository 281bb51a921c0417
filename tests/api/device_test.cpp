/// @file zero/optimizer.h with ZERO_KEY_DEVICE: every function with a stream argument uses that
/// stream, and bad devices are errors of one call.
#include "api_world.h"
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_cuda.h"

#include <vector>

namespace zero::test::device_test {
namespace {

constexpr int64_t kCount = 1000;
constexpr int64_t kNbytes = kCount * static_cast<int64_t>(sizeof(float));
constexpr int64_t kLateUs = 2000;

zero_config *device_config(int64_t device) {
  zero_config *config = nullptr;
  EXPECT_EQ(ZERO_OK, zero_config_create(&config));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_DEVICE, device));
  ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_CUDA_MODULE, caller_module()));
  ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_LR, 0.5));
  return config;
}

/// A world of one whose only tensor begins with zeros, and memory and a stream of device 0.
struct DeviceWorld {
  explicit DeviceWorld(int64_t tier = ZERO_TIER_HOST, int64_t nonfinite = ZERO_NONFINITE_SKIP) {
    zero_config *config = device_config(0);
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_NONFINITE, nonfinite));
    ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_TIER, tier));
    ZERO_EXPECT_OK(zero_optimizer_create(group, config, &optimizer));
    zero_config_release(config);
    const int64_t shape = kCount;
    ZERO_EXPECT_OK(zero_optimizer_add_param(optimizer, nullptr, "w", ZERO_DTYPE_F32, &shape, 1, &id));
    ZERO_EXPECT_OK(zero_optimizer_seal(optimizer));
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  }
  DeviceWorld(const DeviceWorld &) = delete;
  ~DeviceWorld() {
    caller_wait(stream);
    zero_optimizer_release(optimizer);
    zero_group_release(group);
    caller_stream_destroy(stream);
    caller_free(memory);
  }

  /// True if every element in device memory has this value, after earlier work of the stream.
  bool holds(float value) const {
    std::vector<float> got(kCount);
    caller_copy(stream, got.data(), memory, kNbytes, 0);
    caller_wait(stream);
    return got == std::vector<float>(kCount, value);
  }

  /// The address of the parameter, for the stream.
  void *param() const {
    void *data = nullptr;
    ZERO_EXPECT_OK(zero_optimizer_param_acquire(optimizer, id, nullptr, 0, stream, &data));
    return data;
  }

  /// Returns the values that the stream reads late at an address, if `call` was made at once.
  template <class Call>
  std::vector<float> seen_late(const void *address, Call &&call) const {
    std::vector<float> got(kCount);
    caller_copy(stream, got.data(), address, kNbytes, 5 * kLateUs);
    call();
    caller_wait(stream);
    return got;
  }

  zero_group *group = solo_group();
  zero_optimizer *optimizer = nullptr;
  int64_t id = -1;
  void *memory = caller_alloc(0, kNbytes);
  void *stream = caller_stream_create(0);
};

TEST(DeviceCalls, GradientsAndParametersFollowTheStream) {
  const DeviceWorld world;
  const std::vector<float> ones(kCount, 1.0F);
  const std::vector<float> sevens(kCount, 7.0F);
  void *data = nullptr;
  for (const bool is_async : {false, true}) {
    caller_copy(world.stream, world.memory, ones.data(), kNbytes, kLateUs);
    ZERO_ASSERT_OK(zero_optimizer_grad_ready(world.optimizer, world.id, world.memory, 0, kCount, world.stream));
    ZERO_ASSERT_OK(zero_optimizer_step(world.optimizer, world.stream, nullptr));
    caller_copy(world.stream, world.memory, sevens.data(), kNbytes, kLateUs);
    if (is_async) {
      zero_request *request = nullptr;
      ZERO_ASSERT_OK(zero_optimizer_param_acquire_async(world.optimizer, world.id, world.memory, kCount, world.stream, &data, &request));
      ZERO_EXPECT_OK(zero_request_wait(request));
      zero_request_release(request);
    } else {
      ZERO_ASSERT_OK(zero_optimizer_param_acquire(world.optimizer, world.id, world.memory, kCount, world.stream, &data));
    }
    EXPECT_EQ(data, world.memory);
    EXPECT_TRUE(world.holds(is_async ? -1.0F : -0.5F));
    ZERO_EXPECT_OK(zero_optimizer_param_release(world.optimizer, world.id));
  }
}

const std::vector<float> kZeros(kCount, 0.0F);
const std::vector<float> kOnes(kCount, 1.0F);

TEST(DeviceCalls, OnTheDeviceWhatChangesParametersComesAfterItsStream) {
  const DeviceWorld world(ZERO_TIER_DEVICE);
  const void *param = world.param();
  const auto give = [&] { ZERO_EXPECT_OK(zero_optimizer_grad_ready(world.optimizer, world.id, kOnes.data(), 0, kCount, nullptr)); };
  give();
  EXPECT_EQ(world.seen_late(param, [&] { ZERO_EXPECT_OK(zero_optimizer_step(world.optimizer, world.stream, nullptr)); }), kZeros);
  give();
  ZERO_ASSERT_OK(zero_optimizer_reduce(world.optimizer, nullptr, nullptr));
  const std::vector<float> after_one(kCount, -0.5F);
  EXPECT_EQ(world.seen_late(param, [&] { ZERO_EXPECT_OK(zero_optimizer_apply(world.optimizer, world.stream)); }), after_one);
  ZERO_ASSERT_OK(zero_optimizer_gather(world.optimizer, world.stream));
  const auto write = [&] {
    ZERO_EXPECT_OK(zero_optimizer_write(world.optimizer, world.id, ZERO_SLOT_PARAM, 0, kOnes.data(), kCount, world.stream));
  };
  EXPECT_EQ(world.seen_late(param, write), std::vector<float>(kCount, -1.0F));
  EXPECT_EQ(world.seen_late(param, [] {}), kOnes);
}

TEST(DeviceCalls, OnTheDeviceAddressesAreForWorkAfterWhatTheLibraryDoes) {
  emulated_late(5 * kLateUs);
  const DeviceWorld world(ZERO_TIER_DEVICE);
  void *other = caller_stream_create(0);
  const std::vector<float> sevens(kCount, 7.0F);
  std::vector<float> got(kCount);
  void *grad = nullptr;
  void *param = nullptr;
  int64_t accumulate = 0;
  ZERO_ASSERT_OK(zero_optimizer_grad_ready(world.optimizer, world.id, kOnes.data(), 0, kCount, world.stream));
  ZERO_ASSERT_OK(zero_optimizer_step(world.optimizer, world.stream, nullptr));
  // The update may still read the gradient and write the parameter.
  ZERO_ASSERT_OK(zero_optimizer_grad_acquire(world.optimizer, world.id, other, &grad, &accumulate));
  caller_copy(other, grad, sevens.data(), kNbytes, 0);
  ZERO_ASSERT_OK(zero_optimizer_param_acquire(world.optimizer, world.id, nullptr, 0, other, &param));
  caller_copy(other, got.data(), param, kNbytes, 0);
  ZERO_ASSERT_OK(zero_optimizer_param_release(world.optimizer, world.id));
  caller_wait(other);
  EXPECT_EQ(got, std::vector<float>(kCount, -0.5F));
  caller_stream_destroy(other);
  emulated_late(0);
}

/// Without checks of gradients the host may be a step ahead.
TEST(DeviceCalls, OnTheDeviceStepsUnderWayKeepTheirRate) {
  emulated_late(5 * kLateUs);
  const DeviceWorld world(ZERO_TIER_DEVICE, ZERO_NONFINITE_PROPAGATE);
  for (const double rate : {0.5, 0.25, 0.125}) {
    ZERO_ASSERT_OK(zero_optimizer_set_f64(world.optimizer, 0, ZERO_KEY_LR, rate));
    ZERO_ASSERT_OK(zero_optimizer_grad_ready(world.optimizer, world.id, kOnes.data(), 0, kCount, world.stream));
    ZERO_ASSERT_OK(zero_optimizer_step(world.optimizer, world.stream, nullptr));
  }
  EXPECT_EQ(world.seen_late(world.param(), [] {}), std::vector<float>(kCount, -0.875F));
  ZERO_EXPECT_OK(zero_optimizer_param_release(world.optimizer, world.id));
  emulated_late(0);
}

TEST(DeviceCalls, OnTheDeviceAGraphOfAStepRunsAgainAndAgain) {
  const DeviceWorld world(ZERO_TIER_DEVICE);
  void *scale = nullptr;
  ZERO_ASSERT_OK(zero_optimizer_loss_scale_address(world.optimizer, world.stream, &scale));
  caller_copy(world.stream, world.memory, kOnes.data(), kNbytes, kLateUs);
  const auto step = [&] {
    ZERO_EXPECT_OK(zero_optimizer_grad_ready(world.optimizer, world.id, world.memory, 0, kCount, world.stream));
    ZERO_EXPECT_OK(zero_optimizer_step(world.optimizer, world.stream, nullptr));
  };
  step();
  caller_capture_begin(world.stream);
  EXPECT_TRUE(failed_with(zero_optimizer_loss_scale_address(world.optimizer, world.stream, &scale), ZERO_E_STATE, "CUDA graph"));
  step();
  void *graph = caller_capture_end(world.stream);
  ASSERT_NE(graph, nullptr);
  for (const double rate : {0.25, 0.125}) {
    ZERO_ASSERT_OK(zero_optimizer_set_f64(world.optimizer, 0, ZERO_KEY_LR, rate));
    ZERO_ASSERT_OK(zero_optimizer_refresh(world.optimizer, world.stream));
    caller_replay(graph, world.stream);
  }
  zero_step_result result;
  ZERO_ASSERT_OK(zero_step_result_init(&result, sizeof result));
  ZERO_ASSERT_OK(zero_optimizer_result(world.optimizer, world.stream, &result));
  EXPECT_EQ(result.step, 3);
  double seen = 0;
  caller_copy(world.stream, &seen, scale, sizeof seen, 0);
  caller_wait(world.stream);
  EXPECT_EQ(seen, result.loss_scale);
  EXPECT_EQ(world.seen_late(world.param(), [] {}), std::vector<float>(kCount, -0.875F));
  ZERO_EXPECT_OK(zero_optimizer_param_release(world.optimizer, world.id));
  caller_graph_destroy(graph);
}

TEST(DeviceCalls, MemoryAndStreamsOfAnotherDeviceLeaveTheOptimizerAsItWas) {
  const DeviceWorld world;
  void *other_memory = caller_alloc(1, kNbytes);
  void *other_stream = caller_stream_create(1);
  void *data = nullptr;
  EXPECT_TRUE(failed_with(zero_optimizer_grad_ready(world.optimizer, world.id, other_memory, 0, kCount, world.stream),
                          ZERO_E_INVALID_ARGUMENT, "grad is memory of device 1"));
  EXPECT_TRUE(failed_with(zero_optimizer_param_acquire(world.optimizer, world.id, other_memory, kCount, world.stream, &data),
                          ZERO_E_INVALID_ARGUMENT, "dst is memory of device 1"));
  EXPECT_TRUE(failed_with(zero_optimizer_grad_ready(world.optimizer, world.id, world.memory, 0, kCount, other_stream),
                          ZERO_E_INVALID_ARGUMENT, "stream is one of device 1"));
  EXPECT_TRUE(
      failed_with(zero_optimizer_step(world.optimizer, other_stream, nullptr), ZERO_E_INVALID_ARGUMENT, "stream is one of device 1"));
  EXPECT_TRUE(failed_with(zero_optimizer_read(world.optimizer, world.id, ZERO_SLOT_PARAM, 0, world.memory, kCount, world.stream),
                          ZERO_E_UNSUPPORTED, "data is memory of device 0"));
  ZERO_EXPECT_OK(zero_optimizer_step(world.optimizer, nullptr, nullptr));
  caller_stream_destroy(other_stream);
  caller_free(other_memory);
}

TEST(DeviceCalls, ADeviceThatIsNotThereIsAnErrorOfCreate) {
  zero_group *group = solo_group();
  zero_config *config = device_config(2);
  zero_optimizer *optimizer = nullptr;
  EXPECT_TRUE(failed_with(zero_optimizer_create(group, config, &optimizer), ZERO_E_DEVICE, "must be in 0 .. 1"));
  EXPECT_EQ(optimizer, nullptr);
  EXPECT_TRUE(failed_with(zero_config_set_i64(config, ZERO_KEY_DEVICE, -2), ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_DEVICE is -2"));
  zero_config_release(config);
  zero_group_release(group);
}

TEST(DeviceCalls, DevicesAreAFeature) { EXPECT_EQ(zero_has_feature(ZERO_FEATURE_CUDA), 1); }

}  // namespace
}  // namespace zero::test::device_test
