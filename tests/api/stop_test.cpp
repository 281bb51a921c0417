/// @file zero_optimizer_request_stop as signal handlers and racing threads call it.
#include "api_world.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::stop_test {
namespace {

zero_optimizer *training = nullptr;
volatile std::sig_atomic_t handled = 0;
volatile std::sig_atomic_t refused = 0;

void on_signal(int number) {
  handled = handled + 1;
  if (zero_optimizer_request_stop(training, number) != ZERO_OK) refused = refused + 1;
}

class Handler {
 public:
  explicit Handler(int number) : number_(number) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    EXPECT_EQ(0, ::sigaction(number, &action, &before_));
  }
  Handler(const Handler &) = delete;
  ~Handler() { ::sigaction(number_, &before_, nullptr); }

 private:
  const int number_;
  struct sigaction before_ = {};
};

int64_t reason_of_step(zero_optimizer *optimizer) {
  zero_step_result result;
  ZERO_EXPECT_OK(zero_step_result_init(&result, sizeof result));
  ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, &result));
  return result.stop_reason;
}

TEST(Stop, AHandlerAsksAndTheNextStepReports) {
  const World world;
  training = world.running;
  const Handler handler(SIGUSR1);
  EXPECT_EQ(0, reason_of_step(world.running));
  ASSERT_EQ(0, std::raise(SIGUSR1));
  EXPECT_EQ(SIGUSR1, reason_of_step(world.running));
  EXPECT_EQ(0, reason_of_step(world.running));
}

/// A result of the size that the struct first had ends before the field.
TEST(Stop, AnOlderResultStaysAsItIs) {
  const World world;
  zero_step_result result;
  ZERO_ASSERT_OK(zero_step_result_init(&result, 56));
  result.stop_reason = -7;
  ZERO_ASSERT_OK(zero_optimizer_request_stop(world.running, 3));
  ZERO_ASSERT_OK(zero_optimizer_step(world.running, nullptr, &result));
  EXPECT_EQ(-7, result.stop_reason);
  zero_step_result newest;
  ZERO_ASSERT_OK(zero_step_result_init(&newest, sizeof newest));
  ZERO_ASSERT_OK(zero_optimizer_result(world.running, nullptr, &newest));
  EXPECT_EQ(3, newest.stop_reason);
}

TEST(Stop, BadHandlesAndReasonsAreCodesWithoutATextOfTheirOwn) {
  World world;
  zero_optimizer *released = world.new_optimizer();
  zero_optimizer_release(released);
  (void)zero_group_rank(nullptr, nullptr);
  const std::string before = last_text();
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_optimizer_request_stop(nullptr, 1));
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_optimizer_request_stop(released, 1));
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_optimizer_request_stop(reinterpret_cast<zero_optimizer *>(world.group), 1));
  EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_optimizer_request_stop(reinterpret_cast<zero_optimizer *>(&world), 1));
  for (const int64_t reason : {int64_t{0}, int64_t{-1}, INT64_MIN})
    EXPECT_EQ(ZERO_E_INVALID_ARGUMENT, zero_optimizer_request_stop(world.running, reason));
  EXPECT_EQ(before, last_text());
  EXPECT_EQ(0, reason_of_step(world.running));
}

/// The thread is interrupted anywhere: within calls that take locks, write error texts, make
/// handles and release them.
TEST(Stop, AHandlerMayInterruptAnyCall) {
  const World world;
  const Handler handler(SIGUSR2);
  handled = 0;
  refused = 0;
  std::atomic<bool> ended{false};
  const pthread_t trained = ::pthread_self();
  World other;
  training = other.new_optimizer();
  std::thread sender([&] {
    while (!ended.load()) {
      ::pthread_kill(trained, SIGUSR2);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  int64_t reported = 0;
  for (int64_t round = 0; round < 300 || handled < 100; ++round) {
    int64_t out = 0;
    EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_group_rank(nullptr, &out));
    zero_optimizer *old = training;
    zero_optimizer *made = round % 2 == 0 ? world.running : other.new_optimizer();
    training = made;
    if (old != world.running) zero_optimizer_release(old);
    reported += reason_of_step(world.running) > 0 ? 1 : 0;
  }
  ended.store(true);
  sender.join();
  std::printf("signals handled = %d, refused = %d, steps that reported a stop = %lld\n", static_cast<int>(handled),
              static_cast<int>(refused), static_cast<long long>(reported));
  EXPECT_EQ(0, refused);
  EXPECT_GT(reported, 0);
  if (training != world.running) zero_optimizer_release(training);
}

/// A request reaches the optimizer while its handle is live. Afterwards it returns
/// ZERO_E_BAD_HANDLE, even if the slot of the handle is used again.
TEST(Stop, ThreadsMayAskWhileTheHandleIsReleased) {
  World world;
  std::atomic<zero_optimizer *> current{world.new_optimizer()};
  std::atomic<bool> ended{false};
  std::atomic<int64_t> asked{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (!ended.load()) {
        const int32_t status = zero_optimizer_request_stop(current.load(), 5);
        EXPECT_TRUE(status == ZERO_OK || status == ZERO_E_BAD_HANDLE) << status;
        if (status == ZERO_OK) asked.fetch_add(1);
      }
    });
  }
  for (int64_t round = 0; round < 2000 || asked.load() < 100; ++round) {
    zero_optimizer *old = current.load();
    zero_optimizer_release(old);
    EXPECT_EQ(ZERO_E_BAD_HANDLE, zero_optimizer_request_stop(old, 5));
    current.store(world.new_optimizer());
  }
  ended.store(true);
  for (std::thread &thread : threads) thread.join();
  zero_optimizer_release(current.load());
}

}  // namespace
}  // namespace zero::test::stop_test
