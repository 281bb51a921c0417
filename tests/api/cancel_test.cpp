/// @file Threads that are cancelled (pthread_cancel) while they wait in a call: the call completes
/// as usual, and the thread ends after it.
#include "api_world.h"
#include "tests/sleep.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace zero::test::cancel_test {
namespace {

/// A thread that makes one call; its cancellation is requested before the call.
class CancelledCaller {
 public:
  explicit CancelledCaller(std::function<int32_t()> call) : call_(std::move(call)) {
    EXPECT_EQ(::pthread_create(&thread_, nullptr, run, this), 0);
    EXPECT_EQ(::pthread_cancel(thread_), 0);
    cancelled_ = true;
  }
  CancelledCaller(const CancelledCaller &) = delete;
  ~CancelledCaller() {
    void *ended = nullptr;
    EXPECT_EQ(::pthread_join(thread_, &ended), 0);
    EXPECT_EQ(ended, PTHREAD_CANCELED);
    EXPECT_EQ(status_, ZERO_OK);
  }

 private:
  static void *run(void *self) {
    auto &mine = *static_cast<CancelledCaller *>(self);
    // Spins without a cancellation point.
    while (!mine.cancelled_) continue;
    mine.status_ = mine.call_();
    ::pthread_testcancel();
    return nullptr;
  }

  std::function<int32_t()> call_;
  std::atomic<bool> cancelled_{false};
  std::atomic<int32_t> status_{1};
  pthread_t thread_{};
};

/// Rank 1 makes the call first and waits for rank 0, which makes its own a while later.
void cancel_in(const std::function<int32_t()> &waits, const std::function<int32_t()> &comes) {
  const CancelledCaller caller(waits);
  sleep_ms(20);
  ZERO_EXPECT_OK(comes());
}

TEST(Cancellation, WaitsForTheEndOfACollectiveOrAMessageAndOthersGoOn) {
  TwoRanks ranks(("cancel." + std::to_string(::getpid())).c_str(), 20'000);
  const auto [zero, one] = ranks.rank;
  std::array<float, 4> sent = {1, 2, 3, 4};
  std::array<float, 4> received = {};
  cancel_in([one] { return zero_group_barrier(one); }, [zero] { return zero_group_barrier(zero); });
  cancel_in([&, one] { return zero_group_recv(one, received.data(), 4, ZERO_DTYPE_F32, 0, nullptr); },
            [&, zero] { return zero_group_send(zero, sent.data(), 4, ZERO_DTYPE_F32, 1, nullptr); });
  EXPECT_EQ(received, sent);
  // A thread that waits in the same group beside the one that is cancelled.
  received = {};
  std::thread beside([&, one] { ZERO_EXPECT_OK(zero_group_recv(one, received.data(), 4, ZERO_DTYPE_F32, 0, nullptr)); });
  cancel_in([one] { return zero_group_barrier(one); }, [zero] { return zero_group_barrier(zero); });
  ZERO_EXPECT_OK(zero_group_send(zero, sent.data(), 4, ZERO_DTYPE_F32, 1, nullptr));
  beside.join();
  EXPECT_EQ(received, sent);
  for (zero_group *group : ranks.rank) ZERO_EXPECT_OK(zero_group_status(group));
}

TEST(Cancellation, WaitsForTheEndOfASealAndOfAStep) {
  TwoRanks ranks(("cancel.step." + std::to_string(::getpid())).c_str(), 20'000);
  std::array<zero_optimizer *, 2> optimizers{};
  const int64_t shape = 4;
  for (size_t i = 0; i < 2; ++i) {
    ZERO_ASSERT_OK(zero_optimizer_create(ranks.rank[i], nullptr, &optimizers[i]));
    int64_t id = -1;
    ZERO_ASSERT_OK(zero_optimizer_add_param(optimizers[i], nullptr, "weight", ZERO_DTYPE_F32, &shape, 1, &id));
  }
  const auto [zero, one] = optimizers;
  cancel_in([one] { return zero_optimizer_seal(one); }, [zero] { return zero_optimizer_seal(zero); });
  cancel_in([one] { return zero_optimizer_begin(one, ZERO_SOURCE_ROOT); }, [zero] { return zero_optimizer_begin(zero, ZERO_SOURCE_ROOT); });
  const std::array<float, 4> gradient = {1, 1, 1, 1};
  for (int step = 0; step < 3; ++step) {
    for (zero_optimizer *optimizer : optimizers) ZERO_ASSERT_OK(zero_optimizer_grad_ready(optimizer, 0, gradient.data(), 0, 4, nullptr));
    cancel_in([one] { return zero_optimizer_step(one, nullptr, nullptr); }, [zero] { return zero_optimizer_step(zero, nullptr, nullptr); });
  }
  for (zero_optimizer *optimizer : optimizers) zero_optimizer_release(optimizer);
  for (zero_group *group : ranks.rank) ZERO_EXPECT_OK(zero_group_status(group));
}

/// The library restores the cancellation state of the program.
TEST(Cancellation, StaysHeldOffWhereTheProgramDoesThat) {
  int before = 0;
  ASSERT_EQ(::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before), 0);
  zero_group_release(solo_group());
  int after = PTHREAD_CANCEL_ENABLE;
  ASSERT_EQ(::pthread_setcancelstate(before, &after), 0);
  EXPECT_EQ(after, PTHREAD_CANCEL_DISABLE);
}

}  // namespace
}  // namespace zero::test::cancel_test
