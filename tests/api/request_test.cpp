/// @file Requests as a program uses them: progress, ends, and the lifetime of results.
#include "api_world.h"

#include <zero/request.h>

#include <array>

namespace zero::test::request_test {
namespace {

/// Optimizers of two ranks that this thread holds, of stage 3, with a parameter of eight elements;
/// begun.
struct TwoOptimizers {
  explicit TwoOptimizers(const char *name) : groups(name) {
    zero_config *config = nullptr;
    EXPECT_EQ(ZERO_OK, zero_config_create(&config));
    EXPECT_EQ(ZERO_OK, zero_config_set_i64(config, ZERO_KEY_STAGE, 3)) << last_text();
    const int64_t shape = kCount;
    int64_t id = -1;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(ZERO_OK, zero_optimizer_create(groups.rank[i], config, &rank[i])) << last_text();
      EXPECT_EQ(ZERO_OK, zero_optimizer_add_param(rank[i], nullptr, "weight", ZERO_DTYPE_F32, &shape, 1, &id)) << last_text();
    }
    zero_config_release(config);
    both([](zero_optimizer *optimizer, zero_request **out) { return zero_optimizer_seal_async(optimizer, out); });
    both([](zero_optimizer *optimizer, zero_request **out) { return zero_optimizer_begin_async(optimizer, ZERO_SOURCE_SHARDS, out); });
  }
  TwoOptimizers(const TwoOptimizers &) = delete;
  ~TwoOptimizers() {
    for (zero_optimizer *optimizer : rank) zero_optimizer_release(optimizer);
  }

  /// Begins on both ranks and waits for both.
  template <class Begin>
  void both(Begin &&begin) {
    std::array<zero_request *, 2> requests{};
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(ZERO_OK, begin(rank[i], &requests[i])) << last_text();
    wait(requests[0], requests[1]);
  }

  static void wait(zero_request *first, zero_request *second) {
    int64_t done[2] = {};
    while (done[0] + done[1] < 2) {
      EXPECT_EQ(ZERO_OK, zero_request_test(first, &done[0])) << last_text();
      EXPECT_EQ(ZERO_OK, zero_request_test(second, &done[1])) << last_text();
    }
    zero_request_release(first);
    zero_request_release(second);
  }

  static constexpr int64_t kCount = 8;
  TwoRanks groups;
  std::array<zero_optimizer *, 2> rank{};
};

/// The step of rank 0 waits in the queue for its param_acquire, which waits for rank 1.
TEST(Requests, WhatWaitsInTheQueueIsUnderWay) {
  TwoOptimizers optimizers("requests_queued");
  const auto [first, second] = optimizers.rank;
  const std::array<float, TwoOptimizers::kCount> grad{1, 2, 3};
  std::array<void *, 2> data{};
  std::array<zero_request *, 2> acquires{};
  std::array<zero_request *, 2> verifies{};
  std::array<zero_verify_result, 2> results{};
  for (zero_verify_result &result : results) zero_verify_result_init(&result, sizeof result);
  ZERO_ASSERT_OK(zero_optimizer_param_acquire_async(first, 0, nullptr, 0, nullptr, &data[0], &acquires[0]));
  ZERO_ASSERT_OK(zero_optimizer_grad_ready(first, 0, grad.data(), 0, 1, nullptr));
  ZERO_ASSERT_OK(zero_optimizer_verify_async(first, nullptr, &results[0], &verifies[0]));
  const char *waits = "must wait until the operation under way has ended";
  EXPECT_TRUE(failed_with(zero_optimizer_grad_ready(first, 0, grad.data(), 1, 1, nullptr), ZERO_E_STATE, waits));
  EXPECT_TRUE(failed_with(zero_optimizer_set_f64(first, 0, ZERO_KEY_LR, 0.5), ZERO_E_STATE, waits));
  double rate = 0;
  ZERO_EXPECT_OK(zero_optimizer_get_f64(first, 0, ZERO_KEY_LR, &rate));
  ZERO_ASSERT_OK(zero_optimizer_param_acquire_async(second, 0, nullptr, 0, nullptr, &data[1], &acquires[1]));
  ZERO_ASSERT_OK(zero_optimizer_verify_async(second, nullptr, &results[1], &verifies[1]));
  TwoOptimizers::wait(verifies[0], verifies[1]);
  for (size_t i = 0; i < 2; ++i) {
    ZERO_EXPECT_OK(zero_request_wait(acquires[i]));
    zero_request_release(acquires[i]);
    EXPECT_EQ(results[i].found, ZERO_FINDING_NONE);
  }
  ZERO_EXPECT_OK(zero_optimizer_grad_ready(first, 0, grad.data(), 1, 1, nullptr));
}

TEST(Requests, ACallThatWasRefusedIsNotUnderWay) {
  const World world;
  const std::array<float, World::kCount> grad{};
  EXPECT_TRUE(failed_with(zero_optimizer_step_async(world.running, nullptr, nullptr, nullptr), ZERO_E_INVALID_ARGUMENT, "out"));
  ZERO_EXPECT_OK(zero_optimizer_grad_ready(world.running, 0, grad.data(), 0, World::kCount, nullptr));
}

TEST(Requests, ResultsAreThereWhenTheRequestHasEndedAndItsStatusStays) {
  const World world;
  zero_step_result result;
  zero_step_result_init(&result, sizeof result);
  result.grad_norm = -7;
  zero_request *request = nullptr;
  ZERO_ASSERT_OK(zero_optimizer_step_async(world.running, nullptr, &result, &request));
  ZERO_EXPECT_OK(zero_request_wait(request));
  EXPECT_EQ(result.step, 1);
  EXPECT_EQ(result.unfilled_count, World::kCount);
  EXPECT_EQ(result.struct_size, sizeof result);
  int64_t done = 0;
  ZERO_EXPECT_OK(zero_request_test(request, &done));
  EXPECT_EQ(done, 1);
  ZERO_EXPECT_OK(zero_request_wait(request));
  zero_request_release(request);

  ZERO_ASSERT_OK(zero_optimizer_gather_async(world.running, nullptr, &request));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(failed_with(zero_request_wait(request), ZERO_E_STATE, "zero_optimizer_gather comes after zero_optimizer_reduce"));
    EXPECT_TRUE(failed_with(zero_request_test(request, &done), ZERO_E_STATE, "zero_optimizer_gather comes after zero_optimizer_reduce"));
    EXPECT_EQ(done, 1);
  }
  zero_request_release(request);
}

}  // namespace
}  // namespace zero::test::request_test
