/// @file Ranks that never arrive, leave, block, stop or die, seen through a group: every living rank gets an error that names rank and
/// operation within its deadline and half a second.
#include "core/clock.h"
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "tests/faults/outcomes.h"
#include "tests/faults/shared_counter.h"
#include "tests/group/collective_cases.h"
#include "tests/group/process_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <latch>
#include <thread>

namespace zero::test::group_faults_test {
namespace {

constexpr int64_t kRanks = 3;
constexpr int64_t kOdd = 2;
constexpr int64_t kDeadlineMs = 400;
constexpr int64_t kGraceMs = 500;
constexpr int64_t kConnectMs = 10'000;

std::string meeting(const char *name) {
  static int number = 0;
  return std::string("group_faults.") + name + "." + std::to_string(::getpid()) + "." + std::to_string(number++);
}

Status connect(const std::string &name, int64_t rank, int64_t size, std::shared_ptr<Group> *out, int64_t deadline_ms = kDeadlineMs,
               int64_t rendezvous_ms = 20'000) {
  Config config;
  ZERO_TRY(config.set_i64(ZERO_KEY_DEADLINE_MS, deadline_ms));
  ZERO_TRY(config.set_i64(ZERO_KEY_RENDEZVOUS_MS, rendezvous_ms));
  OperationQueue queue;
  return queue.run(connect_local_group(
      name, rank, size, GroupOptions(config), [](const Place &) { return test_reducer(); }, out));
}

Status run_all_reduce(Group &group) {
  float value = 1;
  return group.queue()->run(all_reduce(group, &value, &value, 1, DType::f32, ReduceOp::sum));
}

TimedOutcome timed_all_reduce(Group &group) {
  return timed([&] { return run_all_reduce(group); });
}

/// Runs one good all_reduce on all ranks, then odd(group) on rank 2 and rest(group) on the others; returns the others' outcomes.
template <class OddRank, class Rest = TimedOutcome (*)(Group &)>
std::vector<TimedOutcome> with_odd_rank(const char *name, OddRank odd, Rest rest = timed_all_reduce) {
  const std::string at = meeting(name);
  std::vector<TimedOutcome> outcomes(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Status made = connect(at, rank, kRanks, &group);
    ASSERT_TRUE(made.ok()) << made.text();
    ASSERT_TRUE(run_all_reduce(*group).ok());
    if (rank == kOdd) {
      odd(std::move(group));
    } else {
      outcomes[static_cast<size_t>(rank)] = rest(*group);
    }
  });
  outcomes.pop_back();
  return outcomes;
}

TEST(GroupFaultsThreads, ARankThatNeverComesIsNamedAtTheRendezvousDeadline) {
  const std::string at = meeting("missing");
  std::vector<Status> outcomes(2);
  const int64_t begin = now_ns();
  run_thread_ranks(2, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    outcomes[static_cast<size_t>(rank)] = connect(at, rank, kRanks, &group, kDeadlineMs, 500);
  });
  EXPECT_LE(ms_since(begin), 500 + kGraceMs);
  for (const Status &status : outcomes) EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS) << status.text();
  EXPECT_NE(std::string(outcomes[0].text()).find("missing: rank 2"), std::string::npos) << outcomes[0].text();
}

TEST(GroupFaultsThreads, ARankThatNeverArrivesIsATimeoutThatNamesIt) {
  std::atomic<int> finished{0};
  const auto outcomes = with_odd_rank("never", [&](std::shared_ptr<Group> group) {
    while (group->usable().ok()) sleep_ms(1);
    finished = 1;
  });
  EXPECT_EQ(finished, 1);
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"rank 2", "all_reduce"}, kDeadlineMs + kGraceMs);
}

TEST(GroupFaultsThreads, AMessageThatNobodySendsIsATimeoutThatNamesItsPeer) {
  const auto outcomes = with_odd_rank(
      "silent",
      [](std::shared_ptr<Group> group) {
        while (group->usable().ok()) sleep_ms(1);
      },
      [](Group &group) {
        float value = 1;
        TimedOutcome outcome = timed([&] { return group.recv_queue(kOdd)->run(group.recv(&value, 1, DType::f32, kOdd)); });
        EXPECT_EQ(value, 1);
        return outcome;
      });
  for (const TimedOutcome &outcome : outcomes) {
    const std::string text = outcome.status.text();
    EXPECT_EQ(outcome.status.code(), ZERO_E_TIMEOUT) << text;
    EXPECT_NE(text.find("recv(f32, count 1, from rank 2)"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 (process"), std::string::npos) << text;
    EXPECT_LE(outcome.waited_ms, kDeadlineMs + kGraceMs);
  }
}

TEST(GroupFaultsThreads, ARankThatReturnsEarlyHasLeft) {
  const auto outcomes = with_odd_rank("early", [](std::shared_ptr<Group> group) { group.reset(); });
  expect_errors(outcomes, ZERO_E_PEER_LEFT, {"rank 2", "all_reduce"}, kGraceMs);
}

TEST(GroupFaultsThreads, ARankThatBlocksTooLongGetsTheErrorOfTheOthers) {
  Status late;
  const auto outcomes = with_odd_rank("blocks", [&late](std::shared_ptr<Group> group) {
    sleep_ms(2 * kDeadlineMs);
    late = run_all_reduce(*group);
  });
  expect_errors(outcomes, ZERO_E_TIMEOUT, {"rank 2", "all_reduce"}, kDeadlineMs + kGraceMs);
  EXPECT_EQ(late.code(), ZERO_E_TIMEOUT) << late.text();
}

TEST(GroupFaultsThreads, ASlowRankIsNotADeadOne) {
  const int repeats = full_tests() ? 50 : 5;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto outcomes = with_odd_rank("slow", [](std::shared_ptr<Group> group) {
      sleep_ms(kDeadlineMs / 2);
      EXPECT_TRUE(run_all_reduce(*group).ok());
    });
    for (const TimedOutcome &outcome : outcomes) EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
  }
}

TEST(GroupFaultsThreads, AbortFromAnotherThreadWakesEveryWaitingRank) {
  const auto outcomes = with_odd_rank("abort", [](std::shared_ptr<Group> group) {
    std::thread other([&group] {
      sleep_ms(50);
      group->fail(Status::error(ZERO_E_ABORTED, "all_reduce was given up by rank 2 on purpose"));
    });
    other.join();
  });
  expect_errors(outcomes, ZERO_E_ABORTED, {"rank 2", "all_reduce"}, 50 + kGraceMs);
}

TEST(GroupFaultsThreads, AbortReachesRanksThatWaitInAGroupSplitFromIt) {
  const auto outcomes = with_odd_rank(
      "abort_children",
      [](std::shared_ptr<Group> group) {
        std::shared_ptr<Group> child;
        ASSERT_TRUE(group->queue()->run(split(*group, 0, 0, &child)).ok());
        sleep_ms(50);
        group->fail(Status::error(ZERO_E_ABORTED, "all_reduce was given up by rank 2 on purpose"));
      },
      [](Group &group) {
        std::shared_ptr<Group> child;
        EXPECT_TRUE(group.queue()->run(split(group, 0, 0, &child)).ok());
        return timed_all_reduce(*child);
      });
  expect_errors(outcomes, ZERO_E_ABORTED, {"rank 2", "all_reduce"}, 50 + kGraceMs);
}

/// Rank 1 hears of the abort before what was split off is poisoned, and releases that.
TEST(GroupFaultsThreads, ARankThatReleasesAGroupBecauseTheOneAboveWasAbortedSaysSo) {
  const std::string at = meeting("abort_release");
  std::vector<std::shared_ptr<Group>> worlds(2);
  std::vector<std::shared_ptr<Group>> children(2);
  run_thread_ranks(2, [&](int64_t rank) {
    const auto index = static_cast<size_t>(rank);
    ASSERT_TRUE(connect(at, rank, 2, &worlds[index]).ok());
    ASSERT_TRUE(worlds[index]->queue()->run(split(*worlds[index], 0, 0, &children[index])).ok());
  });
  worlds[0]->transport().peers().poison(Status::error(ZERO_E_ABORTED, "rank 0 gave up on purpose"));
  children[1].reset();
  EXPECT_EQ(run_all_reduce(*children[0]).code(), ZERO_E_ABORTED);
}

/// Rank 0, alone in its part, aborts the world; rank 1 waits with wait(part) in the other part, in whose every call rank 2 is missing.
/// The part is split from the world, or from a group between that is released. Returns what rank 1 got.
template <class Wait>
TimedOutcome abort_from_outside(Wait wait, bool between = false) {
  const std::string at = meeting("abort_outside");
  TimedOutcome outcome;
  std::latch done(1);
  run_thread_ranks(3, [&](int64_t rank) {
    std::shared_ptr<Group> world;
    std::shared_ptr<Group> part;
    ASSERT_TRUE(connect(at, rank, 3, &world, 20'000).ok());
    ASSERT_TRUE(world->queue()->run(split(*world, rank == 0 ? 0 : 1, 0, &part)).ok());
    if (between) {
      const std::shared_ptr<Group> released = std::move(part);
      ASSERT_TRUE(released->queue()->run(split(*released, 0, 0, &part)).ok());
    }
    if (rank == 0) {
      sleep_ms(50);
      world->fail(Status::error(ZERO_E_ABORTED, "rank 0 gave the world up on purpose"));
    }
    if (rank == 1) {
      outcome = timed([&] { return wait(*part); });
      done.count_down();
    }
    done.wait();
    if (rank == 2) {
      EXPECT_EQ(part->look().code(), ZERO_E_ABORTED);
      EXPECT_EQ(run_all_reduce(*part).code(), ZERO_E_ABORTED);
    }
  });
  return outcome;
}

TEST(GroupFaultsThreads, AbortReachesGroupsThatTheAbortingRankIsNotIn) {
  float value = 1;
  const TimedOutcome outcomes[] = {
      abort_from_outside(run_all_reduce),
      abort_from_outside(run_all_reduce, true),
      abort_from_outside([&](Group &part) { return part.send_queue(1)->run(part.send(&value, 1, DType::f32, 1)); }),
      abort_from_outside([&](Group &part) { return part.recv_queue(1)->run(part.recv(&value, 1, DType::f32, 1)); }),
      abort_from_outside([](Group &part) {
        const Deadline patience = Deadline::after_ms(2'000);
        while (part.look().ok() && !patience.passed()) sleep_ms(1);
        return part.usable();
      }),
  };
  for (const TimedOutcome &outcome : outcomes) expect_errors({outcome}, ZERO_E_ABORTED, {"gave the world up"}, 50 + kGraceMs);
}

/// Calls call(part) until it fails, as often as is needed to learn of an abort.
Status call_until_failure(const std::function<Status()> &call) {
  constexpr int kMostCalls = 100;
  Status status;
  for (int i = 0; i < kMostCalls && status.ok(); ++i) status = call();
  return status;
}

/// This thread is both ranks of the world, and of a part of it; rank 1 is alone in another.
TEST(GroupFaultsThreads, AbortReachesGroupsInWhichNoCallEverWaits) {
  const std::string at = meeting("abort_unwaited");
  std::vector<std::shared_ptr<Group>> worlds(2);
  std::vector<std::shared_ptr<Group>> pairs(2);
  std::vector<std::shared_ptr<Group>> alone(2);
  run_thread_ranks(2, [&](int64_t rank) {
    const auto index = static_cast<size_t>(rank);
    ASSERT_TRUE(connect(at, rank, 2, &worlds[index]).ok());
    ASSERT_TRUE(worlds[index]->queue()->run(split(*worlds[index], 0, 0, &pairs[index])).ok());
    ASSERT_TRUE(worlds[index]->queue()->run(split(*worlds[index], rank, 0, &alone[index])).ok());
  });
  // As rank 1 hears of what rank 0, were it in none of the parts, had aborted.
  worlds[0]->transport().peers().poison(Status::error(ZERO_E_ABORTED, "rank 0 gave up on purpose"));
  const auto message = [&] {
    float value = 1;
    const auto sent = pairs[0]->send_queue(1)->submit(pairs[0]->send(&value, 1, DType::f32, 1));
    (void)pairs[0]->send_queue(1)->progress();
    const Status received = pairs[1]->recv_queue(0)->run(pairs[1]->recv(&value, 1, DType::f32, 0));
    const Status status = pairs[0]->send_queue(1)->wait(sent);
    return received.ok() ? status : received;
  };
  EXPECT_EQ(call_until_failure([&] { return run_all_reduce(*alone[1]); }).code(), ZERO_E_ABORTED);
  EXPECT_EQ(call_until_failure(message).code(), ZERO_E_ABORTED);
}

/// Rank 0 calls all_reduce in one child of the world, rank 1 a barrier in another; the patient rank waits longer. Returns what the other
/// got.
Status call_different_groups(int64_t patient) {
  const std::string at = meeting("different");
  Status impatient;
  std::latch both_waited(2);
  run_thread_ranks(2, [&](int64_t rank) {
    std::shared_ptr<Group> world;
    ASSERT_TRUE(connect(at, rank, 2, &world).ok());
    std::shared_ptr<Group> first;
    std::shared_ptr<Group> second;
    ASSERT_TRUE(world->queue()->run(split(*world, 0, 0, &first)).ok());
    ASSERT_TRUE(world->queue()->run(split(*world, 0, 0, &second)).ok());
    Group &mine = rank == 0 ? *first : *second;
    mine.set_deadline_ms(rank == patient ? 3 * kDeadlineMs : kDeadlineMs);
    Status status = rank == 0 ? run_all_reduce(mine) : mine.queue()->run(barrier(mine));
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    if (rank != patient) impatient = std::move(status);
    both_waited.arrive_and_wait();
  });
  return impatient;
}

TEST(GroupFaultsThreads, CallsOnDifferentGroupsAreATimeoutThatTellsWhereTheOtherRankStands) {
  const std::string from_barrier = call_different_groups(0).text();
  EXPECT_NE(from_barrier.find("all_reduce"), std::string::npos) << from_barrier;
  const std::string from_all_reduce = call_different_groups(1).text();
  EXPECT_NE(from_all_reduce.find("barrier"), std::string::npos) << from_all_reduce;
}

/// Each rank loops all_reduce until it fails, then writes code, time of the error and text.
int loop_until_error(const std::string &name, int64_t rank, int64_t deadline_ms, int out_fd, SharedCounter &connected) {
  std::shared_ptr<Group> group;
  const Status made = connect(name, rank, kRanks, &group, deadline_ms);
  if (!made.ok()) return 1;
  connected.add();
  write_text(out_fd, "ready\n");
  Status status;
  while (status.ok()) status = run_all_reduce(*group);
  write_text(out_fd, std::to_string(status.code()) + " " + std::to_string(now_ns()) + " " + status.text());
  return 0;
}

struct Reported {
  int32_t code = 0;
  int64_t at_ns = 0;
  std::string text;
};

Reported parse(const std::string &output) {
  const size_t begin = output.find("ready\n");
  if (begin == std::string::npos) return {};
  Reported reported;
  long long at = 0;
  int used = 0;
  if (std::sscanf(output.c_str() + begin + 6, "%d %lld %n", &reported.code, &at, &used) < 2) return {};
  reported.at_ns = at;
  reported.text = output.substr(begin + 6 + static_cast<size_t>(used));
  return reported;
}

TEST(GroupFaultsProcesses, AKilledRankIsReportedByEveryLivingRank) {
  const int repeats = full_tests() ? 100 : 10;
  std::vector<int64_t> delays_us;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const std::string name = meeting("kill");
    int64_t killed_ns = 0;
    SharedCounter connected;
    const auto results = run_process_ranks(
        kRanks, [&](int64_t rank, int out_fd) { return loop_until_error(name, rank, 30'000, out_fd, connected); }, 20'000,
        [&](const std::vector<pid_t> &pids) {
          connected.await(kRanks, kConnectMs);
          sleep_ms(20 + 7 * repeat);
          killed_ns = now_ns();
          ::kill(pids[kOdd], SIGKILL);
        });
    EXPECT_FALSE(results.timed_out);
    for (size_t rank = 0; rank < kOdd; ++rank) {
      const Reported reported = parse(results.texts[rank]);
      EXPECT_EQ(reported.code, ZERO_E_PEER_LOST) << results.describe();
      EXPECT_NE(reported.text.find("rank 2"), std::string::npos) << reported.text;
      delays_us.push_back((reported.at_ns - killed_ns) / 1000);
    }
  }
  std::sort(delays_us.begin(), delays_us.end());
  const int64_t median = delays_us[delays_us.size() / 2];
  std::printf("%d kills: median %lld us, longest %lld us\n", repeats, static_cast<long long>(median),
              static_cast<long long>(delays_us.back()));
  // The promise is 100 ms; a single longer delay on a loaded machine is the scheduler's.
  EXPECT_LE(median, 100'000);
  EXPECT_LE(delays_us.back(), 1'000'000);
}

TEST(GroupFaultsProcesses, AStoppedRankIsATimeoutAndIsFencedWhenItGoesOn) {
  const std::string name = meeting("stop");
  SharedCounter connected;
  const auto results = run_process_ranks(
      kRanks, [&](int64_t rank, int out_fd) { return loop_until_error(name, rank, kDeadlineMs, out_fd, connected); }, 20'000,
      [&](const std::vector<pid_t> &pids) {
        connected.await(kRanks, kConnectMs);
        sleep_ms(100);
        ::kill(pids[kOdd], SIGSTOP);
        sleep_ms(kDeadlineMs + 2 * kGraceMs);
        ::kill(pids[kOdd], SIGCONT);
      });
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const Reported reported = parse(results.texts[rank]);
    EXPECT_EQ(reported.code, ZERO_E_TIMEOUT) << results.describe();
    EXPECT_NE(reported.text.find("rank 2"), std::string::npos) << reported.text;
    EXPECT_NE(reported.text.find("all_reduce"), std::string::npos) << reported.text;
  }
}

TEST(GroupFaultsProcesses, ARankThatExitsWithoutReleaseIsLost) {
  const std::string name = meeting("exit");
  SharedCounter connected;
  const auto results = run_process_ranks(
      kRanks,
      [&](int64_t rank, int out_fd) {
        if (rank != kOdd) return loop_until_error(name, rank, 30'000, out_fd, connected);
        auto *group = new std::shared_ptr<Group>;
        if (!connect(name, rank, kRanks, group).ok()) return 1;
        for (int call = 0; call < 10; ++call) {
          if (!run_all_reduce(**group).ok()) return 1;
        }
        return 0;
      },
      20'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  for (size_t rank = 0; rank < kOdd; ++rank) EXPECT_EQ(parse(results.texts[rank]).code, ZERO_E_PEER_LOST) << results.describe();
}

}  // namespace
}  // namespace zero::test::group_faults_test
