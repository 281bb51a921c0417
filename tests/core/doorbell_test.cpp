/// @file Doorbells between threads and processes, and the pauses of waiting loops.
#include "core/doorbell.h"

#include "core/clock.h"
#include "core/mapping.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

namespace zero {
namespace {

constexpr int64_t kLongNs = 60'000'000'000;

TEST(Deadline, PassesWhenItsTimeIsOver) {
  EXPECT_TRUE(Deadline::after_ms(0).passed());
  EXPECT_FALSE(Deadline::after_ms(int64_t{1} << 40).passed());
}

bool never() { return false; }

TEST(Doorbell, NobodySleepsWhoIsReady) {
  Doorbell bell;
  const int64_t begin = now_ns();
  bell.sleep_unless([] { return true; }, kLongNs);
  EXPECT_LT(now_ns() - begin, kLongNs / 2);
}

TEST(Doorbell, ARingAfterTheLookEndsTheSleep) {
  Doorbell bell;
  const int64_t begin = now_ns();
  const auto ring_and_miss = [&bell] {
    bell.ring();
    return false;
  };
  bell.sleep_unless(ring_and_miss, kLongNs);
  EXPECT_LT(now_ns() - begin, kLongNs / 2);
}

TEST(Doorbell, ARingBeforeTheLookIsNotKept) {
  Doorbell bell;
  bell.ring();
  const int64_t begin = now_ns();
  bell.sleep_unless(never, 2'000'000);
  EXPECT_GE(now_ns() - begin, 1'900'000);
}

/// Two sides take turns; a lost ring would end in the outer time limit.
void take_turns(Doorbell &mine, Doorbell &peer, std::atomic<int> &turn, int me, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto my_turn = [&] { return turn.load(std::memory_order_acquire) == me; };
    while (!my_turn()) mine.sleep_unless(my_turn, kLongNs);
    turn.store(1 - me, std::memory_order_release);
    peer.ring();
  }
}

TEST(Doorbell, NoRingIsLostBetweenThreads) {
  Doorbell bells[2];
  std::atomic<int> turn{0};
  std::jthread other([&] { take_turns(bells[1], bells[0], turn, 1, 20'000); });
  take_turns(bells[0], bells[1], turn, 0, 20'000);
}

TEST(Doorbell, NoRingIsLostBetweenProcesses) {
  struct Shared {
    Doorbell bells[2];
    std::atomic<int> turn{0};
  };
  std::shared_ptr<Mapping> mapping;
  ASSERT_TRUE(Mapping::create_shared(sizeof(Shared), &mapping).ok());
  auto *shared = new (mapping->data()) Shared;
  const auto results = test::run_process_ranks(
      2,
      [&](int64_t rank, int) {
        const int me = static_cast<int>(rank);
        take_turns(shared->bells[me], shared->bells[1 - me], shared->turn, me, 20'000);
        return 0;
      },
      60'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(Backoff, SleepsInTheEndWithAndWithoutABell) {
  Doorbell bell;
  for (Doorbell *given : {static_cast<Doorbell *>(nullptr), &bell}) {
    Backoff backoff;
    const int64_t begin = now_ns();
    for (int round = 0; round < 600; ++round) {
      if (!backoff.stays_awake()) backoff.sleep(given, never);
    }
    EXPECT_GE(now_ns() - begin, 5'000'000) << "as many pauses of 50 us and more at the end";
  }
}

TEST(Backoff, LooksOnceMoreBeforeItSleeps) {
  Doorbell bell;
  Backoff backoff;
  int looks = 0;
  const auto ready = [&looks] { return ++looks > 0; };
  const int64_t begin = now_ns();
  for (int round = 0; round < 600; ++round) {
    if (!backoff.stays_awake()) backoff.sleep(&bell, ready);
  }
  EXPECT_GT(looks, 0);
  EXPECT_LT(looks, 600) << "it spins and yields first";
  EXPECT_LT(now_ns() - begin, kLongNs / 2);
}

}  // namespace
}  // namespace zero
