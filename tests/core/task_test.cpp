/// @file Tasks: results, nesting, errors, exceptions, waiting; queues of operations advanced by
/// several threads.
#include "core/task.h"

#include "tests/core/failures.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace zero::task_test {
namespace {

/// Ready after some polls, or when opened. Returns an error if one is set.
class Gate final : public Waitable {
 public:
  explicit Gate(int looks = 0, Doorbell *bell = nullptr, Status failure = {}) : looks_(looks), bell_(bell), failure_(std::move(failure)) {}
  Status poll(bool *out_ready) override {
    ++polls;
    *out_ready = open || looks_-- <= 0;
    return failure_;
  }
  Doorbell *doorbell() override { return bell_; }

  std::atomic<bool> open{false};
  int polls = 0;

 private:
  int looks_;
  Doorbell *bell_;
  Status failure_;
};

constexpr int kNever = 1 << 30;

Task give(Status status) { co_return status; }
Task wait_for(Gate &gate) {
  ZERO_CO_AWAIT(gate);
  co_return {};
}
Task note(std::vector<int> &notes, int value, Gate *gate = nullptr) {
  if (gate != nullptr) ZERO_CO_AWAIT(*gate);
  notes.push_back(value);
  co_return {};
}
Task both(Status first, Status second) {
  ZERO_CO_AWAIT(give(first));
  ZERO_CO_TRY(second);
  ZERO_CO_CHECK(second.ok(), ZERO_E_INTERNAL, "never");
  co_return {};
}
Task check(int value) {
  ZERO_CO_CHECK(value > 0, ZERO_E_INVALID_ARGUMENT, "value is %d", value);
  co_return {};
}
template <class Exception>
Task throwing(Exception exception) {
  throw exception;
  co_return {};
}
Task nested(int depth) {
  if (depth > 0) ZERO_CO_AWAIT(nested(depth - 1));
  co_return depth == 0 ? Status::error(ZERO_E_STATE, "bottom") : Status();
}
Task many(int count) {
  for (int i = 0; i < count; ++i) ZERO_CO_AWAIT(give({}));
  co_return {};
}

Status run(Task task) { return OperationQueue().run(std::move(task)); }

TEST(Task, ReturnsItsStatus) {
  EXPECT_TRUE(run(give({})).ok());
  EXPECT_STREQ(run(give(Status::error(ZERO_E_BUSY, "mine"))).text(), "mine");
}

TEST(Task, DoesNotStartBeforeItIsRun) {
  std::vector<int> notes;
  { const Task task = note(notes, 1); }
  EXPECT_TRUE(notes.empty());
}

TEST(Task, MacrosPassTheFirstErrorUp) {
  EXPECT_TRUE(run(both({}, {})).ok());
  EXPECT_STREQ(run(both(Status::error(ZERO_E_BUSY, "first"), Status::error(ZERO_E_BUSY, "second"))).text(), "first");
  EXPECT_STREQ(run(both({}, Status::error(ZERO_E_BUSY, "second"))).text(), "second");
  EXPECT_TRUE(run(check(1)).ok());
  EXPECT_STREQ(run(check(-1)).text(), "value is -1");
}

TEST(Task, NestsDeeplyAndLoopsLongWithoutUsingTheStack) {
  EXPECT_STREQ(run(nested(10'000)).text(), "bottom");
  EXPECT_TRUE(run(many(100'000)).ok());
}

TEST(Task, ExceptionsBecomeErrors) {
  EXPECT_EQ(run(throwing(std::bad_alloc())).code(), ZERO_E_OUT_OF_MEMORY);
  const Status status = run(throwing(std::runtime_error("oops")));
  EXPECT_EQ(status.code(), ZERO_E_INTERNAL);
  EXPECT_NE(std::string(status.text()).find("oops"), std::string::npos);
  EXPECT_EQ(run(throwing(5)).code(), ZERO_E_INTERNAL);
}

TEST(Task, OutOfMemoryForAFrameIsAnException) {
  drop_cached_frames();
  const test::FailingNew failing(0);
  EXPECT_THROW((void)give({}), std::bad_alloc);
}

TEST(Operation, WaitsWithoutBlockingAndEndsOnce) {
  Gate gate(2);
  Operation operation(wait_for(gate));
  EXPECT_FALSE(operation.advance());
  EXPECT_FALSE(operation.advance());
  EXPECT_FALSE(operation.done());
  EXPECT_TRUE(operation.advance());
  EXPECT_TRUE(operation.advance()) << "advancing what has ended changes nothing";
  EXPECT_TRUE(operation.done());
  EXPECT_EQ(gate.polls, 3);
}

TEST(Operation, AnErrorEndsTheWait) {
  Gate gate(kNever, nullptr, Status::error(ZERO_E_TIMEOUT, "too late"));
  Operation operation(wait_for(gate));
  EXPECT_TRUE(operation.advance());
  EXPECT_STREQ(operation.status().text(), "too late");
}

TEST(Operation, TellsTheDoorbellOfWhatItWaitsFor) {
  Doorbell bell;
  Gate gate(1, &bell);
  Operation operation(wait_for(gate));
  EXPECT_EQ(operation.doorbell(), nullptr);
  EXPECT_FALSE(operation.advance());
  EXPECT_EQ(operation.doorbell(), &bell);
  EXPECT_TRUE(operation.advance());
  EXPECT_EQ(operation.doorbell(), nullptr);
}

TEST(Operation, HasNoDoorbellWhenNothingRings) {
  class Silent final : public Waitable {
   public:
    Status poll(bool *out_ready) override {
      *out_ready = looked_;
      looked_ = true;
      return {};
    }

   private:
    bool looked_ = false;
  } silent;
  const auto wait_silently = [](Silent &waitable) -> Task {
    ZERO_CO_AWAIT(waitable);
    co_return {};
  };
  Operation operation(wait_silently(silent));
  EXPECT_FALSE(operation.advance());
  EXPECT_EQ(operation.doorbell(), nullptr);
  EXPECT_TRUE(operation.advance());
}

TEST(OperationQueue, RunsOperationsInTheOrderTheyCameIn) {
  OperationQueue queue;
  std::vector<int> notes;
  Gate gate(kNever);
  const auto first = queue.submit(note(notes, 1, &gate));
  const auto second = queue.submit(note(notes, 2));
  EXPECT_EQ(queue.progress(), Look::waits);
  EXPECT_TRUE(notes.empty());
  gate.open = true;
  EXPECT_TRUE(queue.wait(second).ok());
  EXPECT_TRUE(first->done());
  EXPECT_EQ(notes, (std::vector<int>{1, 2}));
  EXPECT_EQ(queue.progress(), Look::empty);
  EXPECT_EQ(queue.doorbell(), nullptr);
}

// While it waits, the thread also begins later operations, so that their messages are sent, unless
// a progress thread does so.
TEST(OperationQueue, WaitEndsWithItsOperationWhereTheQueueIsWatched) {
  for (const bool watched : {true, false}) {
    OperationQueue queue;
    std::vector<int> notes;
    const auto first = queue.submit(note(notes, 1));
    queue.submit(note(notes, 2));
    const auto third = queue.submit(note(notes, 3));
    queue.set_watched(watched);
    EXPECT_TRUE(queue.wait(first).ok());
    EXPECT_EQ(notes.size(), watched ? 1U : 3U);
    EXPECT_TRUE(queue.wait(third).ok());
    EXPECT_EQ(notes, (std::vector<int>{1, 2, 3}));
  }
}

/// A thread that finds another thread's poll in progress returns at once. If that poll misses the
/// new operation, no thread might poll again.
TEST(OperationQueue, WhatIsGivenWhileALookEndsIsBegun) {
  constexpr int kTimes = 100'000;  // most runs of that many met the fault
  OperationQueue queue;
  std::atomic<int> given{0};
  std::atomic<int> looked{0};
  const std::jthread looks([&] {
    for (int i = 1; i <= kTimes; ++i) {
      while (given.load() < i) std::this_thread::yield();
      (void)queue.progress();
      looked = i;
    }
  });
  int left_behind = 0;
  for (int i = 1; i <= kTimes; ++i) {
    given = i;
    const auto operation = queue.submit(give({}));
    (void)queue.progress();
    while (looked.load() < i) std::this_thread::yield();
    left_behind += operation->done() ? 0 : 1;
  }
  EXPECT_EQ(left_behind, 0);
}

TEST(OperationQueue, WhoLeavesOperationsToAProgressThreadWakesIt) {
  Doorbell bell;
  Gate gate(1, &bell);
  OperationQueue queue;
  const auto first = queue.submit(wait_for(gate));
  const auto second = queue.submit(give({}));
  queue.set_watched(true);
  EXPECT_EQ(queue.progress(first.get()), Look::waits);
  EXPECT_EQ(bell.sequence(), 0U);
  EXPECT_EQ(queue.progress(first.get()), Look::waits);
  EXPECT_TRUE(first->done());
  EXPECT_EQ(bell.sequence(), 1U);
  EXPECT_TRUE(queue.wait(second).ok());
  EXPECT_EQ(bell.sequence(), 1U) << "nothing was left behind";
}

TEST(OperationQueue, AFailedOperationDoesNotStopTheNext) {
  OperationQueue queue;
  std::vector<int> notes;
  const auto failed = queue.submit(give(Status::error(ZERO_E_STATE, "no")));
  EXPECT_TRUE(queue.run(note(notes, 1)).ok());
  EXPECT_EQ(failed->status().code(), ZERO_E_STATE);
  EXPECT_EQ(notes.size(), 1U);
}

TEST(OperationQueue, WaitSleepsOnTheDoorbellUntilItRings) {
  Doorbell bell;
  Gate gate(kNever, &bell);
  OperationQueue queue;
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open = true;
    bell.ring();
  });
  EXPECT_TRUE(queue.run(wait_for(gate)).ok());
}

TEST(OperationQueue, AnUnfinishedLongQueueIsFreedWithoutRecursion) {
  Gate gate(kNever);
  std::vector<int> notes;
  {
    OperationQueue queue;
    queue.submit(wait_for(gate));
    for (int i = 0; i < 200'000; ++i) queue.submit(note(notes, i));
    EXPECT_EQ(queue.progress(), Look::waits);
  }
  EXPECT_TRUE(notes.empty());
}

/// Blocks the thread that polls it until `leave` is set.
class Slow final : public Waitable {
 public:
  Status poll(bool *out_ready) override {
    inside = true;
    while (!leave) std::this_thread::yield();
    *out_ready = true;
    return {};
  }
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
};

Task wait_slowly(Slow &slow) {
  ZERO_CO_AWAIT(slow);
  co_return {};
}

TEST(OperationQueue, ProgressReturnsAtOnceWhileAnotherThreadAdvances) {
  Slow slow;
  OperationQueue queue;
  Doorbell elsewhere;
  const auto operation = queue.submit(wait_slowly(slow));
  std::jthread other([&] { queue.progress(); });
  while (!slow.inside) std::this_thread::yield();
  const Listening listening(queue.doorbell());
  const Look look = queue.progress();
  EXPECT_EQ(look, Look::elsewhere);
  EXPECT_FALSE(operation->done());
  ASSERT_NE(listening.bell(), nullptr);
  EXPECT_EQ(listening.bell()->sequence(), listening.seen()) << "nothing ended yet";
  EXPECT_TRUE(queue.hears(look, listening.bell()));
  EXPECT_FALSE(queue.hears(look, &elsewhere)) << "rings that the other thread's turn has seen are past";
  EXPECT_FALSE(queue.hears(look, nullptr));
  slow.leave = true;
  other.join();
  EXPECT_NE(listening.bell()->sequence(), listening.seen()) << "whoever waits for the operation sleeps until the turn has ended";
  EXPECT_EQ(queue.doorbell(), nullptr);
  EXPECT_FALSE(queue.hears(Look::waits, listening.bell())) << "the turn has ended";
  EXPECT_TRUE(queue.wait(operation).ok());
}

TEST(OperationQueue, WhoWaitsForAnOperationIsWokenBeforeThoseBehindItHaveEnded) {
  Slow first;
  Slow second;
  OperationQueue queue;
  const auto operation = queue.submit(wait_slowly(first));
  queue.submit(wait_slowly(second));
  std::jthread other([&] { queue.progress(); });
  while (!first.inside) std::this_thread::yield();
  const Listening listening(queue.doorbell());
  EXPECT_EQ(queue.progress(), Look::elsewhere);
  first.leave = true;
  while (!second.inside) std::this_thread::yield();
  EXPECT_TRUE(operation->done());
  EXPECT_NE(listening.bell()->sequence(), listening.seen());
  second.leave = true;
}

TEST(Pacing, PausesBeginAnewWhenAWaitHasEnded) {
  // Over a thousand unsuccessful polls, at most two of them in one wait. If pauses grew over all
  // waits, the test would take half a second.
  constexpr int kWaits = 600;
  const auto wait_often = []() -> Task {
    for (int i = 0; i < kWaits; ++i) {
      Gate gate(2);
      ZERO_CO_AWAIT(gate);
    }
    co_return {};
  };
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t before = ended_waits();
  EXPECT_TRUE(run(wait_often()).ok());
  EXPECT_EQ(ended_waits() - before, static_cast<uint64_t>(kWaits));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(250));
}

TEST(OperationQueue, TellsWhatItsFirstOperationSleepsOn) {
  Doorbell bell;
  Gate gate(kNever, &bell);
  Gate silent(kNever);
  OperationQueue queue;
  const auto first = queue.submit(wait_for(gate));
  const auto second = queue.submit(wait_for(silent));
  EXPECT_EQ(queue.doorbell(), nullptr) << "nothing has begun";
  EXPECT_EQ(queue.progress(), Look::waits);
  EXPECT_EQ(queue.doorbell(), &bell);
  gate.open = true;
  EXPECT_EQ(queue.progress(), Look::waits);
  EXPECT_TRUE(first->done());
  EXPECT_EQ(queue.doorbell(), nullptr) << "nothing rings for the second";
  silent.open = true;
  EXPECT_TRUE(queue.wait(second).ok());
}

TEST(OperationQueue, ThreadsThatWaitAdvanceOneAnothersOperations) {
  OperationQueue queue;
  std::vector<int> notes;  // only touched by the thread that advances the queue
  test::run_thread_ranks(4, [&](int64_t rank) {
    for (int i = 0; i < 500; ++i) {
      Gate gate(i % 3);
      const auto task = [](std::vector<int> &into, int value, Gate &wait) -> Task {
        ZERO_CO_AWAIT(wait);
        into.push_back(value);
        co_return {};
      };
      ASSERT_TRUE(queue.run(task(notes, static_cast<int>(rank), gate)).ok());
    }
  });
  EXPECT_EQ(notes.size(), 2'000U);
}

}  // namespace
}  // namespace zero::task_test
