/// @file Groups over an NCCL that comes late, fails, never ends or hangs in its abort: every rank gets an error within its deadline and
/// half a second, and what NCCL may still use is kept.
#include "core/clock.h"
#include "group/collectives.h"
#include "group/nccl/nccl_comm.h"
#include "tests/faults/outcomes.h"
#include "tests/faults/over_fake_nccl.h"
#include "tests/group/nccl_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/words_only.h"
#include "tests/sleep.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace zero::test::nccl_faults_test {
namespace {

constexpr int64_t kRanks = 3;
constexpr int64_t kOdd = 1;
constexpr int64_t kDeadlineMs = 400;
constexpr int64_t kGraceMs = 500;
constexpr int64_t kCount = 1000;
constexpr int32_t kSystemError = 2;
constexpr int32_t kRemoteError = 6;

/// One rank's memory on its device.
struct Data {
  explicit Data(int64_t rank) : cases(rank % kDevices), values(cases.alloc(nbytes())) {
    std::vector<float> ones(kCount, 1);
    cases.write(values, ones.data(), nbytes());
  }
  Data(const Data &) = delete;
  ~Data() { cases.free(values, nbytes()); }
  static int64_t nbytes() { return kCount * int64_t{sizeof(float)}; }

  DeviceCases cases;
  void *values;
};

Status run_all_reduce(Group &group, const Data &data) {
  return group.queue()->run(all_reduce(group, data.values, data.values, kCount, DType::f32, ReduceOp::sum));
}

class NcclFaults : public OverFakeNccl<testing::Test> {
 protected:
  static void wait_for(const std::function<bool()> &holds) {
    const Deadline deadline = Deadline::after_ms(10'000);
    while (!holds() && !deadline.passed()) sleep_ms(1);
  }

  /// Connects the ranks, calls prepare() when one all_reduce has gone well, and returns the outcomes of the next one; then calls
  /// after(group) on each rank.
  static std::vector<TimedOutcome> run(
      const std::function<void()> &prepare, const std::function<void(Group &)> &after = [](Group &) {}) {
    const std::string meeting = nccl_meeting();
    std::vector<TimedOutcome> outcomes(kRanks);
    std::barrier together(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      std::shared_ptr<Group> group;
      const Data data(rank);
      const Status made = connect_nccl(meeting, rank, kRanks, &group);
      EXPECT_TRUE(made.ok()) << made.text();
      if (made.ok()) {
        const Status good = run_all_reduce(*group, data);
        EXPECT_TRUE(good.ok()) << good.text();
      }
      together.arrive_and_wait();
      if (rank == 0) prepare();
      together.arrive_and_wait();
      if (group == nullptr) return;
      // Not before: on a busy machine ranks come out of the making of a group at different times.
      group->set_deadline_ms(kDeadlineMs);
      outcomes[static_cast<size_t>(rank)] = timed([&] { return run_all_reduce(*group, data); });
      together.arrive_and_wait();
      after(*group);
      together.arrive_and_wait();
    });
    return outcomes;
  }
};

TEST_F(NcclFaults, AMoveThatNeverEndsIsATimeoutThatNamesTheOperation) {
  const auto outcomes = run([] { fake_nccl_stick(kOdd, 0); });
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not moved", "all_reduce(f32, count 1000, sum)"}, kDeadlineMs + kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, AnErrorOfTheNetworkReachesEveryRankAtOnce) {
  const auto outcomes = run([] { fake_nccl_break(kOdd, 0, kRemoteError); });
  expect_errors(outcomes, ZERO_E_TRANSPORT, {"NCCL failed"}, kGraceMs);
  expect_nothing_left(objects_);
}

/// The last of the kernels may outlive the abort.
TEST_F(NcclFaults, MemoryIsQuietOnceWhatWasAbortedHasLeftTheStreams) {
  const auto outcomes = run(
      [] {
        fake_nccl_stick(kOdd, 0);
        fake_nccl_linger(50'000);
      },
      [&](Group &group) {
        // Of all ranks, where the caller of this one finds its own quiet first.
        if (emulated_spinning() == kRanks) {
          EXPECT_FALSE(group.quiet());
        }
        wait_for([&] { return group.quiet(); });
      });
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not moved"}, kDeadlineMs + kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, AnAbortThatHangsIsGivenUpAndCounted) {
  std::barrier looked(kRanks);
  const auto outcomes = run(
      [] {
        fake_nccl_stick(kOdd, 0);
        fake_nccl_hang_abort(fake_nccl_every_rank);
      },
      [&](Group &group) {
        EXPECT_FALSE(group.quiet());
        EXPECT_EQ(nccl_quarantined(), kRanks);
        looked.arrive_and_wait();
        if (group.rank() == 0) fake_nccl_release();
        wait_for([&] { return group.quiet(); });
        EXPECT_TRUE(group.quiet());
      });
  expect_nothing_left(objects_);
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"NCCL has not moved"}, kDeadlineMs + kGraceMs);
}

/// Pieces of the host that leave from the device: their area stays when the groups are gone.
TEST_F(NcclFaults, WhatHangsKeepsTheAreasThatItMayRead) {
  const std::string meeting = nccl_meeting();
  std::barrier together(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    std::vector<float> values(20 * kCount, 1);
    const auto sum = [&] {
      const auto count = static_cast<int64_t>(values.size());
      return group->queue()->run(all_reduce(*group, values.data(), values.data(), count, DType::f32, ReduceOp::max));
    };
    const Status made = connect_words_nccl(meeting, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    EXPECT_TRUE(sum().ok());
    together.arrive_and_wait();
    if (rank == 0) fake_nccl_stick(kOdd, 0);
    if (rank == 0) fake_nccl_hang_abort(fake_nccl_every_rank);
    together.arrive_and_wait();
    group->set_deadline_ms(kDeadlineMs);
    const TimedOutcome outcome = timed(sum);
    expect_errors({outcome}, ZERO_E_TIMEOUT, {"NCCL has not moved"}, kDeadlineMs + kGraceMs);
  });
  EXPECT_EQ(nccl_quarantined(), kRanks);
  // A stream, its two events, and where pieces arrive and leave from.
  EXPECT_GE(emulated_objects() - objects_, kRanks * 5);
  fake_nccl_release();
  expect_nothing_left(objects_);
}

/// Groups of the same devices work on, and their memory can be given back afterwards.
TEST_F(NcclFaults, OtherGroupsGoOnBesideOneInQuarantine) {
  (void)run([] {
    fake_nccl_stick(kOdd, 0);
    fake_nccl_hang_abort(0);
  });
  EXPECT_EQ(nccl_quarantined(), 1);
  const auto outcomes = run([] {});
  for (const TimedOutcome &outcome : outcomes) EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
  fake_nccl_release();
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, AbortEndsACallThatWaitsForNccl) {
  const std::string meeting = nccl_meeting();
  std::vector<TimedOutcome> outcomes(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Data data(rank);
    const Status made = connect_nccl(meeting, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    std::jthread aborts;
    if (rank == 0) {
      fake_nccl_stick(kOdd, 0);
      aborts = std::jthread([&] {
        sleep_ms(50);
        group->fail(Status::error(ZERO_E_ABORTED, "the test wants no more of this all_reduce"));
      });
    } else {
      sleep_ms(10);
    }
    outcomes[static_cast<size_t>(rank)] = timed([&] { return run_all_reduce(*group, data); });
  });
  expect_errors(outcomes, ZERO_E_ABORTED, {"all_reduce"}, 50 + kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, ARankThatLeavesBeforeItsPartIsNamed) {
  const std::string meeting = nccl_meeting();
  std::vector<TimedOutcome> outcomes(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Data data(rank);
    const Status made = connect_nccl(meeting, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    if (rank == kOdd) return;
    outcomes[static_cast<size_t>(rank)] = timed([&] { return run_all_reduce(*group, data); });
  });
  outcomes.erase(outcomes.begin() + kOdd);
  expect_errors(outcomes, ZERO_E_PEER_LEFT, {"rank 1"}, 2 * kGraceMs);
  expect_nothing_left(objects_);
}

/// How long the others are not told that the odd one leaves, while its end of NCCL does not come.
int64_t ms_until_told() {
  const std::string meeting = nccl_meeting();
  std::barrier together(kRanks);
  std::atomic<int64_t> left_ns{0};
  std::atomic<int64_t> told_ns{0};
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Data data(rank);
    const Status made = connect_nccl(meeting, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    EXPECT_TRUE(run_all_reduce(*group, data).ok());
    if (rank == kOdd) fake_nccl_stick_finalize(kOdd);
    together.arrive_and_wait();
    if (rank == kOdd) {
      left_ns = now_ns();
      return group.reset();
    }
    const Status status = run_all_reduce(*group, data);
    told_ns = now_ns();
    EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << status.text();
  });
  return (told_ns - left_ns) / 1'000'000;
}

/// It awaits NCCL for 250 ms. A busy machine may be as slow, but not each time.
TEST_F(NcclFaults, ARankThatLeavesSaysSoBeforeItAwaitsTheEndOfNccl) {
  int64_t least_ms = ms_until_told();
  for (int attempt = 1; attempt < 10 && least_ms >= 200; ++attempt) least_ms = std::min(least_ms, ms_until_told());
  EXPECT_LT(least_ms, 200);
  expect_nothing_left(objects_);
}

/// Connects ranks that cannot; the odd one comes late.
std::vector<TimedOutcome> outcomes_of_connecting(int64_t rendezvous_ms, int64_t late_ms = 0) {
  const std::string meeting = nccl_meeting();
  std::vector<TimedOutcome> outcomes(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    if (rank == kOdd) sleep_ms(late_ms);
    outcomes[static_cast<size_t>(rank)] =
        timed([&] { return connect_nccl(meeting, rank, kRanks, &group, {.rendezvous_ms = rendezvous_ms}); });
  });
  return outcomes;
}

/// Who finds out first tells the others.
void expect_not_connected(const std::vector<TimedOutcome> &outcomes, int64_t limit_ms) {
  for (const TimedOutcome &outcome : outcomes) {
    const int32_t code = outcome.status.code();
    EXPECT_TRUE(code == ZERO_E_RENDEZVOUS || code == ZERO_E_PEER_FAILED) << status_name(code) << ": " << outcome.status.text();
    expect_errors({outcome}, code, {"rank ", " waited ", " ms "}, limit_ms);
  }
}

TEST_F(NcclFaults, ACommunicatorThatNeverComesIsAnErrorAtTheRendezvousDeadline) {
  fake_nccl_stick_init(kOdd);
  expect_not_connected(outcomes_of_connecting(kDeadlineMs), kDeadlineMs + kGraceMs);
  expect_nothing_left(objects_);
}

/// Ranks that come late leave NCCL what is left of the time, not all of it once more.
TEST_F(NcclFaults, ALateRankDoesNotGiveNcclTheRendezvousDeadlineAnew) {
  fake_nccl_stick_init(kOdd);
  expect_not_connected(outcomes_of_connecting(2000, 1500), 2000 + kGraceMs);
  expect_nothing_left(objects_);
}

/// The same of ranks that have met.
TEST_F(NcclFaults, ARankThatIsLateToACommunicatorDoesNotGiveNcclTheTimeAnew) {
  constexpr int64_t kMakeMs = 2000;
  const std::string meeting = nccl_meeting();
  const zero_nccl_table *nccl = nullptr;
  ASSERT_TRUE(load_nccl_module(ZERO_NCCL_FILE, &nccl).ok());
  fake_nccl_stick_init(kOdd);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    OperationQueue queue;
    std::shared_ptr<Transport> under;
    ASSERT_TRUE(queue.run(connect_local(meeting, rank, kRanks, {}, &under)).ok());
    NcclTransport transport(std::move(under), *nccl);
    if (rank == kOdd) sleep_ms(kMakeMs * 3 / 4);
    const auto reducer = std::make_shared<GroupReducer>(caller_module(), rank % kDevices, 1);
    expect_not_connected({timed([&] { return queue.run(transport.copy_through(reducer, kMakeMs)); })}, kMakeMs + kGraceMs);
  });
  expect_nothing_left(objects_);
}

/// Ranks 2 and 1 make a group that NCCL never connects; rank 0, which is told, is none of its ranks.
TEST_F(NcclFaults, ASplitThatNcclDoesNotConnectSaysWhoseRanksItCounts) {
  const std::string meeting = nccl_meeting();
  std::vector<TimedOutcome> outcomes(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    ASSERT_TRUE(connect_nccl(meeting, rank, kRanks, &group).ok());
    EXPECT_TRUE(group->queue()->run(barrier(*group)).ok());
    if (rank == 0) fake_nccl_stick_init(1);
    EXPECT_TRUE(group->queue()->run(barrier(*group)).ok());
    if (rank > 0) group->set_deadline_ms(kDeadlineMs);
    std::shared_ptr<Group> part;
    outcomes[static_cast<size_t>(rank)] = timed([&] { return group->queue()->run(split(*group, rank == 0 ? -1 : 1, -rank, &part)); });
    if (rank == 0) outcomes[0] = timed([&] { return group->queue()->run(barrier(*group)); });
  });
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"among the 2 ranks of the new group, counted there: rank"}, kDeadlineMs + kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, ACommunicatorThatCannotBeMadeIsAnErrorOnEveryRank) {
  fake_nccl_break_init(kOdd, kSystemError);
  const auto outcomes = outcomes_of_connecting(20'000);
  expect_errors(outcomes, ZERO_E_TRANSPORT, {"NCCL failed in"}, 2 * kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, AnIdThatCannotBeMadeIsAnErrorOnEveryRank) {
  fake_nccl_fail("ncclGetUniqueId", 0);
  const auto outcomes = outcomes_of_connecting(20'000);
  expect_errors(outcomes, ZERO_E_TRANSPORT, {"NCCL names no communicator"}, 2 * kGraceMs);
  expect_nothing_left(objects_);
}

TEST_F(NcclFaults, RanksThatDoNotReleaseTogetherDoNotWaitForOneAnother) {
  const std::string meeting = nccl_meeting();
  std::atomic<int64_t> released{0};
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Status made = connect_nccl(meeting, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    if (rank == 0) fake_nccl_stick_finalize(kOdd);
    while (rank == kOdd && released < kRanks - 1) sleep_ms(1);
    const int64_t begin = now_ns();
    group.reset();
    ++released;
    EXPECT_LE(ms_since(begin), kGraceMs);
  });
  expect_nothing_left(objects_);
}

/// CUDA's frees wait for all that the device does: a move that waits for other ranks would hold up whoever gives memory back meanwhile.
TEST_F(NcclFaults, AReleaseDoesNotWaitForAMoveOfAnotherGroupThatNeverEnds) {
  const std::string meeting = nccl_meeting();
  std::barrier together(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    std::shared_ptr<Group> part;
    const Data data(rank);
    ASSERT_TRUE(connect_nccl(meeting, rank, kRanks, &group).ok());
    ASSERT_TRUE(group->queue()->run(split(*group, 0, 0, &part)).ok());
    together.arrive_and_wait();
    if (rank == 0) fake_nccl_stick(kOdd, 0);
    together.arrive_and_wait();
    group->set_deadline_ms(kDeadlineMs);
    const auto sum = group->queue()->submit(all_reduce(*group, data.values, data.values, kCount, DType::f32, ReduceOp::sum));
    wait_for([&] {
      (void)group->queue()->progress();
      return emulated_spinning() == kRanks;
    });
    const std::jthread gives_up([&] {
      sleep_ms(2 * kGraceMs);
      EXPECT_EQ(group->queue()->wait(sum).code(), ZERO_E_TIMEOUT);
    });
    const int64_t begin = now_ns();
    part.reset();
    EXPECT_LE(ms_since(begin), kGraceMs);
  });
  expect_nothing_left(objects_);
}

/// Every call of NCCL fails once: in creation, in a collective, in release. Every rank comes back in time and nothing is left.
TEST_F(NcclFaults, AnyCallThatFailsIsAnErrorAndLeavesNothing) {
  constexpr int64_t kMostCalls = 400;
  int64_t failures = 0;
  for (int64_t number = 0; number < kMostCalls; number += 1 + number / 16) {
    fake_nccl_reset();
    fake_nccl_fail(nullptr, number);
    const std::string meeting = nccl_meeting();
    std::vector<TimedOutcome> outcomes(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      const Data data(rank);
      outcomes[static_cast<size_t>(rank)] = timed([&] {
        std::shared_ptr<Group> group;
        ZERO_TRY(connect_nccl(meeting, rank, kRanks, &group));
        ZERO_TRY(run_all_reduce(*group, data));
        return run_all_reduce(*group, data);
      });
    });
    const bool failed = fake_nccl_failed() != 0;
    failures += failed ? 1 : 0;
    for (const TimedOutcome &outcome : outcomes) EXPECT_LE(outcome.waited_ms, 3 * kGraceMs) << number << ": " << outcome.status.text();
    const auto bad = [](const TimedOutcome &outcome) { return !outcome.status.ok(); };
    EXPECT_TRUE(failed || std::none_of(outcomes.begin(), outcomes.end(), bad)) << number;
    expect_nothing_left(objects_);
    EXPECT_EQ(fake_nccl_objects(), 0) << number;
  }
  EXPECT_GT(failures, 20);
}

/// From some call on, all calls of CUDA fail.
TEST_F(NcclFaults, DevicesThatFailAreAnErrorOnEveryRank) {
  constexpr int64_t kMostCalls = 300;
  int64_t failures = 0;
  for (int64_t number = 0; number < kMostCalls; number += 1 + number / 16) {
    fake_nccl_reset();
    const std::string meeting = nccl_meeting();
    std::vector<TimedOutcome> outcomes(kRanks);
    std::barrier together(kRanks);
    run_thread_ranks(kRanks, [&](int64_t rank) {
      const Data data(rank);
      together.arrive_and_wait();
      if (rank == 0) emulated_fail_from(number);
      together.arrive_and_wait();
      outcomes[static_cast<size_t>(rank)] = timed([&] {
        std::shared_ptr<Group> group;
        ZERO_TRY(connect_nccl(meeting, rank, kRanks, &group));
        return run_all_reduce(*group, data);
      });
      together.arrive_and_wait();
      if (rank == 0) emulated_fail_from(-1);
      together.arrive_and_wait();
    });
    for (const TimedOutcome &outcome : outcomes) {
      EXPECT_LE(outcome.waited_ms, 3 * kGraceMs) << number << ": " << outcome.status.text();
      failures += outcome.status.ok() ? 0 : 1;
    }
    wait_for([] { return fake_nccl_objects() == 0; });
    EXPECT_EQ(fake_nccl_objects(), 0) << number;
  }
  EXPECT_GT(failures, 50);
}

}  // namespace
}  // namespace zero::test::nccl_faults_test
