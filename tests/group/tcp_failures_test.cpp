/// @file Ranks over sockets that leave, end, fail or come late: who is told what.
#include "group/collectives.h"
#include "tests/group/collective_cases.h"
#include "tests/group/local_ranks.h"
#include "tests/group/tcp_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

namespace zero::tcp_failures_test {
namespace {

using test::await_failure;
using test::barrier;
using test::call;
using test::contains;
using test::own_hosts;
using test::run_task;
using test::run_tcp_ranks;
using test::TcpWorld;

TEST(TcpFailures, PoisonFromAnotherThreadEndsWaitingOnEveryRank) {
  run_tcp_ranks(own_hosts(4), [](int64_t rank, auto transport, TcpWorld &) {
    std::thread other;
    if (rank == 2) {
      other = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        transport->peers().poison(Status::error(ZERO_E_ABORTED, "rank 2 was told to stop"));
        transport->peers().poison(Status::error(ZERO_E_TRANSPORT, "a later cause"));
      });
    }
    // Rank 3 never arrives, so all others wait.
    const Status status = rank == 3 ? await_failure(*transport) : barrier(*transport, 1);
    EXPECT_EQ(status.code(), ZERO_E_ABORTED);
    EXPECT_STREQ(status.text(), "rank 2 was told to stop");
    if (other.joinable()) other.join();
  });
}

TEST(TcpFailures, TheFirstCauseStaysOnEveryRank) {
  run_tcp_ranks(own_hosts(4), [](int64_t rank, auto transport, TcpWorld &) {
    transport->peers().poison(Status::error(ZERO_E_PEER_FAILED, "cause of rank %d", static_cast<int>(rank)));
    const Status first = transport->peers().health();
    EXPECT_EQ(first.code(), ZERO_E_PEER_FAILED);
    for (int i = 0; i < 100; ++i) EXPECT_STREQ(transport->peers().health().text(), first.text());
  });
}

TEST(TcpFailures, AWorldOfOneFailsToo) {
  run_tcp_ranks(own_hosts(1), [](int64_t, auto transport, TcpWorld &) {
    EXPECT_TRUE(barrier(*transport, 1).ok());
    EXPECT_TRUE(test::quiet(*transport).ok());
    EXPECT_EQ(transport->peers().progress_report(call(OperationKind::barrier, 2)), "");
    transport->peers().poison(Status::error(ZERO_E_ABORTED, "enough"));
    EXPECT_EQ(transport->peers().health().code(), ZERO_E_ABORTED);
    EXPECT_EQ(barrier(*transport, 2).code(), ZERO_E_ABORTED);
  });
}

TEST(TcpFailures, ARankThatLeavesIsNamedToThoseWhoWaitAndToNobodyElse) {
  std::barrier seen(2);
  run_tcp_ranks(own_hosts(3), [&](int64_t rank, auto transport, TcpWorld &) {
    ASSERT_TRUE(barrier(*transport, 1).ok());
    if (rank == 1) return;
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(transport->peers().health().ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    seen.arrive_and_wait();
    const Status status = barrier(*transport, 2);
    EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT);
    EXPECT_TRUE(contains(status, "rank 1 (process 1001 on node1) released its group or optimizer") && contains(status, "#2 barrier"))
        << status.text();
  });
}

TEST(TcpFailures, WhoWatchesIsToldOfARankThatLeft) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 1) return;
    EXPECT_EQ(test::await(*transport, [&](bool *) { return transport->peers().watch(); }).code(), ZERO_E_PEER_LEFT);
  });
}

TEST(TcpFailures, WhoWatchesOneRankIsToldOfThatOne) {
  std::barrier seen(2);
  run_tcp_ranks(own_hosts(3), [&](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 1) return;
    const Fingerprint doing = call(OperationKind::recv, 1);
    EXPECT_TRUE(transport->peers().watch_peer(2 - rank, doing).ok());
    seen.arrive_and_wait();
    EXPECT_EQ(test::await(*transport, [&](bool *) { return transport->peers().watch_peer(1, doing); }).code(), ZERO_E_PEER_LEFT);
  });
}

TEST(TcpFailures, LastRoundOfARankThatLeavesStillArrives) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    run_tcp_ranks(own_hosts(3), [](int64_t, auto transport, TcpWorld &) {
      EXPECT_TRUE(barrier(*transport, 1).ok());
      EXPECT_TRUE(test::quiet(*transport).ok());
      EXPECT_TRUE(transport->peers().health().ok());
    });
  }
}

TEST(TcpFailures, LastRoundOfARankWhoseConnectionsEndStillArrives) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::barrier posted(2);
    run_tcp_ranks(own_hosts(2), [&](int64_t rank, auto transport, TcpWorld &world) {
      const std::vector<Offer> offers(2);
      std::vector<Arrival> arrivals(2);
      const Fingerprint fingerprint = call(OperationKind::barrier, 1);
      ASSERT_TRUE(transport->rounds().start(&fingerprint, offers, arrivals).ok());
      if (rank == 1) world.cut(1);
      posted.arrive_and_wait();
      if (rank == 1) return;
      EXPECT_TRUE(test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); }).ok());
      transport->rounds().consume();
      EXPECT_TRUE(transport->peers().health().ok()) << "who waits for nobody may not need that rank";
      EXPECT_EQ(transport->peers().watch().code(), ZERO_E_PEER_LOST);
    });
  }
}

TEST(TcpFailures, ARankWhoseConnectionsEndIsLostToEveryone) {
  run_tcp_ranks(own_hosts(4), [](int64_t rank, auto transport, TcpWorld &world) {
    ASSERT_TRUE(barrier(*transport, 1).ok());
    if (rank == 3) return world.cut(3);
    const Status status = rank == 2 ? await_failure(*transport) : barrier(*transport, 2);
    EXPECT_EQ(status.code(), ZERO_E_PEER_LOST);
    EXPECT_TRUE(contains(status, "rank 3 (process 1003 on node3) has no connection any more (it ended, its program closed descriptors"))
        << status.text();
    EXPECT_TRUE(rank == 2 || contains(status, "while rank ")) << status.text();
  });
}

TEST(TcpFailures, ARankThatFailedAndLeftIsNotLost) {
  run_tcp_ranks(own_hosts(3), [](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 1) return transport->peers().poison(Status::error(ZERO_E_ABORTED, "given up"));
    const Status status = barrier(*transport, 1);
    EXPECT_EQ(status.code(), ZERO_E_ABORTED) << status.text();
  });
}

TEST(TcpFailures, ARankThatDoesNotReadDoesNotHoldUpARelease) {
  std::barrier released(2);
  const auto body = [&](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 0) {
      const std::vector<std::byte> data(60'000);
      const std::vector<Offer> offers(2, {data.data(), 60'000});
      std::vector<Arrival> arrivals(2, {nullptr, 60'000});
      EXPECT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
      bool ready = true;
      EXPECT_TRUE(transport->rounds().poll_quiet(&ready).ok());
      EXPECT_FALSE(ready);
      const std::string text = transport->peers().progress_report(call(OperationKind::exchange, 1));
      EXPECT_NE(text.find("rank 1 (process 1001 on node1) did not answer"), std::string::npos) << text;
      const int64_t begin = now_ns();
      transport.reset();
      EXPECT_LT(now_ns() - begin, 2'000'000'000);
    }
    released.arrive_and_wait();
    if (rank == 0) return;
    EXPECT_NE(barrier(*transport, 1).code(), ZERO_OK);
  };
  run_tcp_ranks(own_hosts(2), body, 4096);
}

/// Rank 1's text of a timeout in a call that rank 0 answers for, after answer(rank 0's transport).
std::string progress_report_of_rank_0(const Fingerprint &fingerprint, const std::function<void(std::shared_ptr<Transport> &)> &answer) {
  std::string text;
  std::barrier step(2);
  std::atomic<bool> asked{false};
  run_tcp_ranks(own_hosts(2), [&](int64_t rank, auto world, TcpWorld &) {
    std::shared_ptr<Transport> group;
    EXPECT_TRUE(run_task(world->derive({0, 1}, 0, 1000, &group)).ok());
    if (rank == 0) answer(group);
    step.arrive_and_wait();
    if (rank == 1) {
      // On a loaded machine the thread that must answer may not run for so long.
      for (int ask = 0; ask < 20 && (text.empty() || text.find("did not answer") != std::string::npos); ++ask) {
        text = group->peers().progress_report(fingerprint);
      }
      asked = true;
    }
    while (!asked) EXPECT_TRUE(world->peers().health().ok());
    step.arrive_and_wait();
  });
  return text;
}

TEST(TcpFailures, ProgressReportsTellWhatTheOtherRankOfAMessageDoes) {
  Fingerprint message = call(OperationKind::recv, 1, 8);
  message.root = 0;
  const std::string name = "rank 0 (process 1000 on node0) ";
  EXPECT_EQ(progress_report_of_rank_0(message, [](auto &) {}), name + "is in no collective of this group");
  const Fingerprint doing = call(OperationKind::barrier, 4);
  EXPECT_EQ(progress_report_of_rank_0(message, [&](auto &group) { group->peers().publish(&doing); }), name + "is in #4 barrier");
  message.kind = OperationKind::send;
  EXPECT_EQ(progress_report_of_rank_0(message, [](auto &group) { group.reset(); }), name + "has left the group");
  const auto poison = [](auto &group) { group->peers().poison(Status::error(ZERO_E_ABORTED, "given up")); };
  EXPECT_EQ(progress_report_of_rank_0(message, poison), name + "has met an error");
  message.kind = OperationKind::recv;
  Fingerprint other = message;
  other.root = 1;
  EXPECT_EQ(progress_report_of_rank_0(message, [&](auto &group) { group->peers().publish_message(other, false); }),
            name + "has #1 recv(bytes, count 8, from rank 1) under way");
}

TEST(TcpFailures, ManyMissingRanksAreCounted) {
  std::barrier asked(10);
  run_tcp_ranks(own_hosts(10), [&](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 0) {
      const Status status = barrier(*transport, 1, 50);
      EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
      EXPECT_TRUE(contains(status, "rank 8 ") && contains(status, "and 1 more")) << status.text();
    }
    asked.arrive_and_wait();
  });
}

constexpr int64_t kLongMs = 20'000;
constexpr int64_t kDeadlineMs = 400;

/// Runs body(rank, group, world) with groups over sockets alone. Calls that must succeed may take long, because the machine may be busy.
template <class Body>
void run_groups(int64_t size, Body body) {
  run_tcp_ranks(own_hosts(size), [&](int64_t rank, auto transport, TcpWorld &world) {
    body(rank, std::make_shared<Group>(std::move(transport), test::test_reducer(), kLongMs), world);
  });
}

Status run_all_reduce(Group &group) {
  float value = 1;
  return group.queue()->run(all_reduce(group, &value, &value, 1, DType::f32, ReduceOp::sum));
}

/// The text names a different call of rank 2 depending on which rank asks first. The content of
/// progress reports has tests of its own.
TEST(TcpFailuresOfGroups, ARankThatNeverArrivesIsATimeoutThatNamesIt) {
  run_groups(3, [](int64_t rank, std::shared_ptr<Group> group, TcpWorld &) {
    ASSERT_TRUE(run_all_reduce(*group).ok());
    if (rank == 2) {
      while (group->usable().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    group->set_deadline_ms(kDeadlineMs);
    const Status status = run_all_reduce(*group);
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    EXPECT_TRUE(contains(status, "rank 2 (process 1002 on node2)") && contains(status, "all_reduce")) << status.text();
  });
}

TEST(TcpFailuresOfGroups, AMessageThatNobodySendsIsATimeoutThatNamesItsPeer) {
  run_groups(2, [](int64_t rank, std::shared_ptr<Group> group, TcpWorld &) {
    if (rank == 1) {
      while (group->usable().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    group->set_deadline_ms(kDeadlineMs);
    float value = 1;
    const Status status = group->recv_queue(1)->run(group->recv(&value, 1, DType::f32, 1));
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    EXPECT_TRUE(contains(status, "recv(f32, count 1, from rank 1)") && contains(status, "rank 1 (process 1001 on node1)")) << status.text();
    EXPECT_EQ(value, 1);
  });
}

TEST(TcpFailuresOfGroups, RanksThatLeaveOrEndAreErrorsThatNameThem) {
  for (const bool leaves : {true, false}) {
    run_groups(3, [&](int64_t rank, std::shared_ptr<Group> group, TcpWorld &world) {
      ASSERT_TRUE(run_all_reduce(*group).ok());
      if (rank == 2) return leaves ? group.reset() : world.cut(2);
      const Status status = run_all_reduce(*group);
      EXPECT_EQ(status.code(), leaves ? ZERO_E_PEER_LEFT : ZERO_E_PEER_LOST) << status.text();
      EXPECT_TRUE(contains(status, "rank 2 (process 1002 on node2)")) << status.text();
    });
  }
}

/// Rank 2 shares memory with rank 3, and hears of it from the other host.
TEST(TcpFailuresOfGroups, ALostRankIsToldToRanksOfTheSameHostThroughTheirMemory) {
  const test::Hosts hosts = {0, 0, 1, 1};
  const std::string name = test::fresh_name();
  TcpWorld world(hosts);
  std::barrier told(4);
  test::run_thread_ranks(4, [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    EXPECT_TRUE(connect_tcp_hosts(world, name, rank, hosts, &transport).ok());
    Group group(std::move(transport), test::test_reducer(), 20'000);
    EXPECT_TRUE(run_all_reduce(group).ok());
    if (rank == 3) {
      world.cut(3);
    } else {
      const Status status = run_all_reduce(group);
      EXPECT_EQ(status.code(), ZERO_E_PEER_LOST) << status.text();
      EXPECT_TRUE(contains(status, "rank 3")) << status.text();
    }
    told.arrive_and_wait();  // a rank that releases its group has left
  });
}

/// Whether the peer is of the same host or of another, and both transports are asked where it stands.
TEST(TcpFailuresOfGroups, BeneathHierarchiesAMessageThatNobodySendsNamesItsPeerToo) {
  const test::Hosts hosts = {0, 0, 1};
  for (const int64_t peer : {1, 2}) {
    const std::string name = test::fresh_name();
    TcpWorld world(hosts);
    test::run_thread_ranks(3, [&](int64_t rank) {
      std::shared_ptr<Transport> transport;
      ASSERT_TRUE(connect_tcp_hosts(world, name, rank, hosts, &transport).ok());
      EXPECT_EQ(transport->capabilities().name, "local and tcp");
      EXPECT_EQ(transport->staging_nbytes() > 0, rank != 2);  // a rank alone on its host shares no memory, and nothing is on its way
      Group group(std::move(transport), test::test_reducer(), kDeadlineMs);
      if (rank != 0) {
        while (group.usable().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      float value = 1;
      const Status status = group.recv_queue(peer)->run(group.recv(&value, 1, DType::f32, peer));
      EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
      EXPECT_TRUE(contains(status, ": rank " + std::to_string(peer) + " (process ")) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::tcp_failures_test
