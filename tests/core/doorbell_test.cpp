/// @file Doorbells between threads and processes, and the pauses of waiting loops.
#include "core/doorbell.h"

#include "core/clock.h"
#include "core/mapping.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

namespace zero::doorbell_test {
namespace {

constexpr int64_t kLongNs = 60'000'000'000;

TEST(Deadline, PassesWhenItsTimeIsOver) {
  EXPECT_TRUE(Deadline::after_ms(0).passed());
  EXPECT_FALSE(Deadline::after_ms(int64_t{1} << 40).passed());
}

TEST(Doorbell, EachRingMovesTheSequenceByOne) {
  Doorbell bell;
  EXPECT_EQ(bell.sequence(), 0U);
  bell.ring();
  bell.ring();
  EXPECT_EQ(bell.sequence(), 2U);
}

TEST(Doorbell, WaitReturnsAtOnceWhenItRangBefore) {
  Doorbell bell;
  const uint32_t seen = bell.sequence();
  bell.ring();
  const int64_t begin = now_ns();
  bell.wait(seen, kLongNs);
  EXPECT_LT(now_ns() - begin, kLongNs / 2);
}

TEST(Doorbell, WaitEndsAfterItsTime) {
  Doorbell bell;
  const int64_t begin = now_ns();
  bell.wait(bell.sequence(), 2'000'000);
  EXPECT_GE(now_ns() - begin, 1'900'000);
}

/// Two sides take turns. A lost ring would run into the time limit of the test.
void take_turns(Doorbell &mine, Doorbell &peer, std::atomic<int> &turn, int me, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (;;) {
      const uint32_t seen = mine.sequence();
      if (turn.load() == me) break;
      mine.wait(seen, kLongNs);
    }
    turn.store(1 - me);
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

/// True if the system can wait for several words at once: a ring of the second bell ends the wait
/// early.
bool hears_several() {
  Doorbell bells[2];
  const Listening listenings[] = {Listening(&bells[0]), Listening(&bells[1])};
  bells[1].ring();
  const int64_t begin = now_ns();
  Doorbell::wait_any(listenings, 200'000'000);
  return now_ns() - begin < 100'000'000;
}

TEST(Doorbell, WaitAnyEndsWithTheRingOfAnyBell) {
  if (!hears_several()) GTEST_SKIP() << "this system waits for one word at a time";
  constexpr size_t kBells = Doorbell::kMostListenings;
  Doorbell bells[kBells];
  for (size_t ringing = 0; ringing < kBells; ++ringing) {
    std::vector<Listening> listenings;
    for (Doorbell &bell : bells) listenings.emplace_back(&bell);
    const int64_t begin = now_ns();
    std::jthread ringer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      bells[ringing].ring();
    });
    Doorbell::wait_any(listenings, kLongNs);
    EXPECT_LT(now_ns() - begin, kLongNs / 2) << "bell " << ringing;
    EXPECT_NE(bells[ringing].sequence(), listenings[ringing].seen());
  }
}

TEST(Doorbell, WaitAnyEndsAfterItsTime) {
  Doorbell bells[3];
  const Listening listenings[] = {Listening(&bells[0]), Listening(&bells[1]), Listening(&bells[2])};
  const int64_t begin = now_ns();
  Doorbell::wait_any(listenings, 2'000'000);
  EXPECT_GE(now_ns() - begin, 1'900'000);
}

TEST(Backoff, SleepsInTheEndWithAndWithoutBells) {
  Doorbell bells[2];
  const Listening listenings[] = {Listening(&bells[0]), Listening(&bells[1])};
  for (const size_t heard : {0, 1, 2}) {
    Backoff backoff;
    const int64_t begin = now_ns();
    for (int round = 0; round < 600; ++round) backoff.pause({listenings, heard});
    EXPECT_GE(now_ns() - begin, 5'000'000) << "as many pauses of 50 us and more at the end";
  }
}

TEST(Backoff, ARingEndsThePause) {
  constexpr int kPauses = 200;
  Doorbell bell;
  const Listening rung(&bell);
  bell.ring();
  Backoff backoff;
  for (int round = 0; round < 600; ++round) backoff.pause(rung);
  // Pauses are 1 ms by now. The machine may delay some series, but not all.
  int64_t shortest_ns = kLongNs;
  for (int series = 0; series < 10; ++series) {
    const int64_t begin = now_ns();
    for (int round = 0; round < kPauses; ++round) backoff.pause(rung);
    shortest_ns = std::min(shortest_ns, now_ns() - begin);
  }
  EXPECT_LT(shortest_ns, kPauses * int64_t{500'000});
}

}  // namespace
}  // namespace zero::doorbell_test
