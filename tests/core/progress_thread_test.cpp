/// @file Progress threads: queues advance while nobody waits for them.
#include "core/progress_thread.h"

#include "core/clock.h"
#include "core/thread_pool.h"

#include "tests/core/failures.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

namespace zero::progress_thread_test {
namespace {

/// Opened by the test, looked at by the progress thread.
class Door final : public Waitable {
 public:
  explicit Door(bool rings) : rings_(rings) {}
  Status poll(bool *out_ready) override {
    *out_ready = open_;
    return {};
  }
  Doorbell *doorbell() override { return rings_ ? &bell_ : nullptr; }
  void open() {
    open_ = true;
    bell_.ring();
  }

 private:
  bool rings_;
  std::atomic<bool> open_{false};
  Doorbell bell_;
};

Task pass(Door &door, std::atomic<int> &passed) {
  ZERO_CO_AWAIT(door);
  ++passed;
  co_return {};
}

bool reaches(const std::atomic<int> &value, int wanted) {
  for (int i = 0; i < 20'000 && value != wanted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return value == wanted;
}

// Runs in a child, where the thread was never started, and first, while this program still has one thread.
TEST(ProgressThread, SaysWhenItCannotBeStartedAndTriesAgain) {
  const auto results = test::run_process_ranks(
      1,
      [](int64_t, int) {
        const auto queue = std::make_shared<OperationQueue>();
        unwatch_queue(queue, 0);  // there is nothing to wait for
        {
          const test::FailingNew no_memory(0);
          if (watch_queue(queue, 0)) return 1;
        }
        {
          const test::FailingThreadStart failing;
          if (watch_queue(queue, 0)) return 2;
        }
        return watch_queue(queue, 0) ? 0 : 3;
      },
      30'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
}

TEST(ProgressThread, AdvancesAQueueThatNobodyWaitsFor) {
  for (const bool rings : {true, false}) {
    Door door(rings);
    std::atomic<int> passed{0};
    const auto queue = std::make_shared<OperationQueue>();
    const auto operation = queue->submit(pass(door, passed));
    ASSERT_TRUE(watch_queue(queue, 0));
    for (int i = 0; i < 20'000 && !queue->watched(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(queue->watched());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(passed, 0);
    door.open();
    EXPECT_TRUE(reaches(passed, 1));
    EXPECT_TRUE(queue->wait(operation).ok());
    unwatch_queue(queue, 0);
    EXPECT_FALSE(queue->watched());
  }
}

TEST(ProgressThread, AdvancesSeveralQueuesAlsoWhenTheyAreGivenTwice) {
  std::atomic<int> passed{0};
  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::shared_ptr<OperationQueue>> queues;
  std::vector<std::shared_ptr<Operation>> operations;
  for (int i = 0; i < 4; ++i) {
    doors.push_back(std::make_unique<Door>(i % 2 == 0));
    queues.push_back(std::make_shared<OperationQueue>());
    operations.push_back(queues.back()->submit(pass(*doors.back(), passed)));
    EXPECT_TRUE(watch_queue(queues.back(), 0));
    EXPECT_TRUE(watch_queue(queues.back(), 0));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const auto &queue : queues) EXPECT_TRUE(watch_queue(queue, 0));
  for (int i = 3; i >= 0; --i) {
    doors[static_cast<size_t>(i)]->open();
    EXPECT_TRUE(reaches(passed, 4 - i));
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queues[static_cast<size_t>(i)]->wait(operations[static_cast<size_t>(i)]).ok());
}

Task pass_and_ring(Door &door, Doorbell &passed) {
  ZERO_CO_AWAIT(door);
  passed.ring();
  co_return {};
}

/// Where the system cannot wait for several words at once, the thread naps between looks.
bool waits_for_several_words() {
#if defined(SYS_futex_waitv)
  ::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, CLOCK_MONOTONIC);
  return errno != ENOSYS && errno != EPERM;
#else
  return false;
#endif
}

/// Long enough for the progress thread to nap, and never in step with its naps.
void let_it_nap(int number) { std::this_thread::sleep_for(std::chrono::microseconds(4000 + 367 * number % 1000)); }

/// From the opening of a door until the progress thread, which watches an older queue as well, has passed it and rung back.
int64_t passing_ns(int number) {
  Door closed(true);
  Door door(true);
  Doorbell done;
  std::atomic<int> passed{0};
  const Listening listening(&done);
  const auto older = std::make_shared<OperationQueue>();
  const auto queue = std::make_shared<OperationQueue>();
  const auto last = older->submit(pass(closed, passed));
  const auto operation = queue->submit(pass_and_ring(door, done));
  EXPECT_TRUE(watch_queue(older, 0));
  EXPECT_TRUE(watch_queue(queue, 0));
  let_it_nap(number);
  const int64_t begin = now_ns();
  door.open();
  done.wait(listening.seen(), 60'000'000'000);
  const int64_t ns = now_ns() - begin;
  EXPECT_TRUE(queue->wait(operation).ok());
  closed.open();
  EXPECT_TRUE(older->wait(last).ok());
  unwatch_queue(queue, 0);
  unwatch_queue(older, 0);
  return ns;
}

/// The same with a thread that does nothing but sleep on one bell: what this machine takes just now.
int64_t answering_ns(int number) {
  Doorbell asked;
  Doorbell done;
  const Listening listening(&done);
  std::thread other([&asked, &done, seen = asked.sequence()] {
    asked.wait(seen, 60'000'000'000);
    done.ring();
  });
  let_it_nap(number);
  const int64_t begin = now_ns();
  asked.ring();
  done.wait(listening.seen(), 60'000'000'000);
  const int64_t ns = now_ns() - begin;
  other.join();
  return ns;
}

// Nothing is polled in time: the thread sleeps on all bells together, and on the one that new queues ring.
TEST(ProgressThread, HearsTheBellsOfAllQueuesAndOfNewOnes) {
  if (!waits_for_several_words()) GTEST_SKIP() << "this system waits for one word at a time";
  // Where it were not heard, a passing would last until the end of a nap of up to 1 ms, most of them longer than this. A busy machine may
  // hold up most passings of a series; only one whose answers are all quick tells that they were not heard.
  constexpr int64_t kSoonNs = 150'000;
  constexpr int kPasses = 15;
  bool heard = false;
  bool quiet = false;
  for (int series = 0; series < 5 && !heard; ++series) {
    int passings = 0;
    int answers = 0;
    for (int i = 0; i < kPasses; ++i) {
      passings += passing_ns(i) < kSoonNs ? 1 : 0;
      answers += answering_ns(i) < kSoonNs / 2 ? 1 : 0;
    }
    heard = passings > kPasses / 2;
    quiet = quiet || answers == kPasses;
  }
  if (!heard && !quiet) GTEST_SKIP() << "this machine is too busy to tell";
  EXPECT_TRUE(heard);
}

/// Keeps the thread that looks at it until another one has passed.
class Obstacle final : public Waitable {
 public:
  explicit Obstacle(const std::atomic<int> &passed) : passed_(passed) {}
  Status poll(bool *out_ready) override {
    *out_ready = reaches(passed_, 1);
    return {};
  }

 private:
  const std::atomic<int> &passed_;
};

Task pass_obstacle(Obstacle &obstacle) {
  ZERO_CO_AWAIT(obstacle);
  co_return {};
}

TEST(ProgressThread, LanesDoNotWaitForEachOther) {
  if (usable_cores() < 2) GTEST_SKIP() << "lanes share a thread where there is one core";
  std::atomic<int> passed{0};
  Obstacle obstacle(passed);
  Door door(false);
  door.open();
  const auto busy = std::make_shared<OperationQueue>();
  const auto other = std::make_shared<OperationQueue>();
  const auto obstructed = busy->submit(pass_obstacle(obstacle));
  const auto passing = other->submit(pass(door, passed));
  ASSERT_TRUE(watch_queue(busy, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(watch_queue(other, 1));
  EXPECT_TRUE(reaches(passed, 1));
  EXPECT_TRUE(busy->wait(obstructed).ok());
  EXPECT_TRUE(other->wait(passing).ok());
}

TEST(ProgressThread, LetsGoOfAQueueThatIsEmpty) {
  std::weak_ptr<OperationQueue> gone;
  {
    const auto queue = std::make_shared<OperationQueue>();
    gone = queue;
    ASSERT_TRUE(watch_queue(queue, 0));
  }
  for (int i = 0; i < 20'000 && !gone.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace zero::progress_thread_test
