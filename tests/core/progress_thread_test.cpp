/// @file Progress threads: queues make progress while no thread waits for them.
#include "core/progress_thread.h"

#include "core/doorbell.h"
#include "core/thread_pool.h"

#include "tests/core/failures.h"
#include "tests/core/waited_words.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <sys/syscall.h>

#include <array>
#include <atomic>
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

// Runs in a child, where the thread was never started, and first, while this program still has one
// thread.
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

#if defined(SYS_futex_waitv)
// The thread sleeps on the bells of all queues together, and on the one that new queues ring: it
// need not look now and then.
TEST(ProgressThread, HearsTheBellsOfAllQueuesAndOfNewOnes) {
  std::atomic<int> passed{0};
  std::array<Door, 2> doors{Door(true), Door(true)};
  std::array<std::shared_ptr<OperationQueue>, 2> queues;
  for (size_t i = 0; i < doors.size(); ++i) {
    queues[i] = std::make_shared<OperationQueue>();
    queues[i]->submit(pass(doors[i], passed));
    EXPECT_TRUE(watch_queue(queues[i], 0));
  }
  test::WaitedWords::Addresses words;
  {
    const test::WaitedWords waited;
    for (int i = 0; i < 20'000 && waited.most().size() < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    words = waited.most();
  }
  EXPECT_EQ(words.size(), 3);
  if (words.size() == 3) {
    EXPECT_EQ(words[0], doors[0].doorbell());
    EXPECT_EQ(words[1], doors[1].doorbell());
    const auto &arrivals = *static_cast<const Doorbell *>(words[2]);
    const uint32_t before = arrivals.sequence();
    EXPECT_TRUE(watch_queue(queues[0], 0));
    EXPECT_NE(arrivals.sequence(), before);
  }
  for (Door &door : doors) door.open();
  EXPECT_TRUE(reaches(passed, 2));
  for (const auto &queue : queues) unwatch_queue(queue, 0);
}
#endif

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
