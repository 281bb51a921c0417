/// @file The thread pool: every piece once, from any thread, with the default rounding, also when
/// no thread can be started.
#include "core/thread_pool.h"

#include "tests/core/failures.h"
#include "tests/group/bind_to_core.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace zero::thread_pool_test {
namespace {

/// Runs pieces that wait a little, so that workers get some; returns the threads that ran one.
std::set<std::thread::id> run_slow_pieces(int64_t pieces) {
  std::vector<std::atomic<int>> runs(static_cast<size_t>(pieces));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_pieces(pieces, [&](int64_t piece) {
    ++runs[static_cast<size_t>(piece)];
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  for (const auto &count : runs) EXPECT_EQ(count, 1);
  return threads;
}

// The first tests run before any worker exists.
TEST(ThreadPool, RunsEverythingOnTheCallerWhenNoThreadCanBeStarted) {
  const test::FailingThreadStart failing;
  EXPECT_EQ(run_slow_pieces(4), std::set{std::this_thread::get_id()});
}

TEST(ThreadPool, RunsEverythingOnTheCallerWhenThereIsNoMemoryForAWorker) {
  std::atomic<int> runs{0};
  std::atomic<int> elsewhere{0};
  const auto caller = std::this_thread::get_id();
  const test::FailingNew failing(0);
  parallel_pieces(4, [&](int64_t) {
    ++runs;
    if (std::this_thread::get_id() != caller) ++elsewhere;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadPool, RunsEverythingOnTheCallerWhereTheCoresAreUnknown) {
  const test::FailingCall failing(test::SystemCall::sched_getaffinity, 1 << 20);
  EXPECT_EQ(usable_cores(), 1);
  EXPECT_EQ(run_slow_pieces(4), std::set{std::this_thread::get_id()});
}

TEST(ThreadPool, UsableCoresAreThoseOfTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_cores(), CPU_COUNT(&before));
  ASSERT_TRUE(test::bind_to_core(0));
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

// Starts the workers.
TEST(ThreadPool, WorkersHaveThePolicyOfTheProcessWhoeverStartsThem) {
  std::set<int> policies;
  std::thread caller([&] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    std::mutex mutex;
    const auto self = std::this_thread::get_id();
    parallel_pieces(16, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::lock_guard lock(mutex);
      if (std::this_thread::get_id() != self) policies.insert(::sched_getscheduler(0));
    });
  });
  caller.join();
  EXPECT_TRUE(usable_cores() == 1 || policies == std::set{::sched_getscheduler(::getpid())});
}

TEST(ThreadPool, RunsEachPieceOnce) {
  for (const int64_t pieces : {-1, 0, 1, 2, 3, 7, 64, 1'000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(pieces > 0 ? pieces : 0));
    parallel_pieces(pieces, [&](int64_t piece) { ++runs[static_cast<size_t>(piece)]; });
    for (const auto &count : runs) ASSERT_EQ(count, 1) << pieces;
  }
}

TEST(ThreadPool, UsesAtMostTheThreadsAskedFor) {
  std::atomic<int> elsewhere{0};
  const auto caller = std::this_thread::get_id();
  parallel_pieces(16, 1, [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::this_thread::get_id() != caller) ++elsewhere;
  });
  EXPECT_EQ(elsewhere, 0);
}

/// Most of them are over before a worker has come to them, and are taken back from it.
TEST(ThreadPool, ShortJobsOfSeveralCallersRunEachPieceOnce) {
  test::run_thread_ranks(3, [](int64_t) {
    for (int round = 0; round < 20'000; ++round) {
      std::array<int, 3> values{};
      parallel_pieces(3, [&](int64_t piece) { values[static_cast<size_t>(piece)] += round; });
      ASSERT_EQ(values, (std::array{round, round, round}));
    }
  });
}

TEST(ThreadPool, UsesAtMostTheUsableCores) {
  const auto threads = run_slow_pieces(16);
  EXPECT_LE(static_cast<int64_t>(threads.size()), usable_cores());
  EXPECT_TRUE(usable_cores() == 1 || threads.size() > 1);
}

TEST(ThreadPool, PieceZeroRunsOnTheCaller) {
  std::thread::id ran;
  parallel_pieces(4, [&](int64_t piece) {
    if (piece == 0) ran = std::this_thread::get_id();
  });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(ThreadPool, SeveralCallersAtOnceEachGetTheirOwnPieces) {
  test::run_thread_ranks(4, [](int64_t) {
    for (int round = 0; round < 300; ++round) {
      std::vector<int> values(17);
      parallel_pieces(17, [&](int64_t piece) { values[static_cast<size_t>(piece)] = static_cast<int>(piece) + round; });
      for (int piece = 0; piece < 17; ++piece) ASSERT_EQ(values[static_cast<size_t>(piece)], piece + round);
    }
  });
}

TEST(ThreadPool, WorkersRoundToNearestAndTakeNoSignals) {
  std::atomic<int> wrong{0};
  const auto caller = std::this_thread::get_id();
  std::fesetround(FE_UPWARD);
  parallel_pieces(8, [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (std::this_thread::get_id() == caller) return;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (std::fegetround() != FE_TONEAREST || sigismember(&blocked, SIGTERM) != 1) ++wrong;
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace zero::thread_pool_test
