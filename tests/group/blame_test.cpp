/// @file Whom the text of a timeout blames: ranks that wait in the same call are not what all wait for, and what waits in a message is in
/// it. With ranks as threads, on one host and on pretended ones.
#include "group/collectives.h"
#include "group/peer_status.h"
#include "tests/group/collective_cases.h"
#include "tests/group/host_ranks.h"
#include "tests/group/tcp_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <vector>

namespace zero::test::blame_test {
namespace {

constexpr int64_t kBlamesMs = 300;  ///< deadline of the rank whose text is looked at
constexpr int64_t kBlamePatienceMs = 60'000;

std::string blame_name(const std::string &what) { return "blame." + std::to_string(::getpid()) + "." + what; }

/// The last two ranks of a group of as many receive from each other, which is none of the first one's business; returns the text of the
/// last one, whose deadline is the first to pass.
std::string text_of_two_that_receive(const Hosts &hosts) {
  const auto size = static_cast<int64_t>(hosts.size());
  const std::string name = blame_name("recv" + std::to_string(size));
  std::string text;
  run_thread_ranks(size, [&](int64_t rank) {
    std::shared_ptr<Group> group;
    const Status made = connect_hosts(name, rank, hosts, test_reducer(), &group);
    ASSERT_TRUE(made.ok()) << made.text();
    if (rank < size - 2) return (void)group->queue()->run(zero::barrier(*group));
    const bool last = rank == size - 1;
    group->set_deadline_ms(last ? kBlamesMs : kBlamePatienceMs);
    const int64_t peer = last ? size - 2 : size - 1;
    float value = 0;
    const Status status = group->recv_queue(peer)->run(group->recv(&value, 1, DType::f32, peer));
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    if (last) text = status.text();
  });
  return text;
}

TEST(Blame, ARankThatReceivesTooIsSaidToDoSo) {
  for (const Hosts &hosts : {Hosts{0, 0}, {0, 1}, {0, 0, 0}, {0, 1, 1}, {0, 0, 1, 1}}) {
    const std::string text = text_of_two_that_receive(hosts);
    const std::string last = std::to_string(hosts.size() - 1);
    const std::string peer = std::to_string(hosts.size() - 2);
    EXPECT_NE(text.find("in #1 recv(f32, count 1, from rank " + peer + "): rank " + peer), std::string::npos) << text;
    EXPECT_NE(text.find("has #1 recv from rank " + last + " under way"), std::string::npos) << text;
    EXPECT_EQ(text.find("has called no collective"), std::string::npos) << text;
  }
}

TEST(Blame, ARankThatReceivesInASplitGroupIsSaidToDoSo) {
  const std::string name = blame_name("split");
  std::string text;
  run_thread_ranks(3, [&](int64_t rank) {
    std::shared_ptr<Group> world;
    std::shared_ptr<Group> pair;
    ASSERT_TRUE(connect_hosts(name, rank, {0, 0, 0}, test_reducer(), &world).ok());
    ASSERT_TRUE(world->queue()->run(split(*world, rank == 0 ? -1 : 0, 0, &pair)).ok());
    float value = 0;
    if (rank == 0) {
      world->set_deadline_ms(kBlamesMs);
      text = world->queue()->run(zero::barrier(*world)).text();
    } else if (rank == 1) {
      // Waits in a group that the failure of the other does not end.
      pair->set_deadline_ms(3 * kBlamesMs);
      EXPECT_EQ(pair->recv_queue(1)->run(pair->recv(&value, 1, DType::f32, 1)).code(), ZERO_E_TIMEOUT);
    } else {
      EXPECT_EQ(await_failure(pair->transport()).code(), ZERO_E_TIMEOUT);
    }
  });
  EXPECT_NE(text.find("waits in group "), std::string::npos) << text;
  EXPECT_NE(text.find(" at #1 recv"), std::string::npos) << text;
}

/// Two ranks on each host. After a round that all have ended rank 0 waits in the next, and all but rank 3 are still in the call.
TEST(Blame, OfManyRanksThoseInTheSameCallAreNotNamed) {
  const std::string name = blame_name("same call");
  std::barrier step(4);
  std::string text;
  run_thread_ranks(4, [&](int64_t rank) {
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    std::shared_ptr<Transport> transport;
    ASSERT_TRUE(connect_host_transport(name, rank, {0, 0, 1, 1}, &transport).ok());
    transport->peers().publish(&fingerprint);
    EXPECT_TRUE(round(*transport, &fingerprint, std::vector<Offer>(4), std::vector<Arrival>(4)).ok());
    if (rank == 3) transport->peers().publish(nullptr);
    step.arrive_and_wait();
    if (rank == 0) {
      const std::vector<Offer> offers(4);
      std::vector<Arrival> arrivals(4);
      EXPECT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
      bool arrived = true;
      EXPECT_TRUE(transport->rounds().poll(&arrived).ok());
      EXPECT_FALSE(arrived);
      text = transport->peers().progress_report(fingerprint);
    }
    step.arrive_and_wait();
  });
  EXPECT_EQ(text.find("rank 1 "), std::string::npos) << text;
  EXPECT_EQ(text.find("rank 2 "), std::string::npos) << text;
  EXPECT_NE(text.find("rank 3 "), std::string::npos) << text;
}

/// Rank 1 waits in the same call as rank 0; rank 2 looks at no socket.
TEST(Blame, OverSocketsAnAnswerFromTheSameCallClearsARank) {
  std::barrier step(3);
  std::string text;
  std::atomic<bool> asked{false};
  run_tcp_ranks(own_hosts(3), [&](int64_t rank, auto transport, TcpWorld &) {
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    transport->peers().publish(&fingerprint);
    const std::vector<Offer> offers(3);
    std::vector<Arrival> arrivals(3);
    if (rank == 0) {
      EXPECT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
    }
    step.arrive_and_wait();
    // On a loaded machine the thread that must answer may not run for so long.
    for (int ask = 0; rank == 0 && ask < 20 && (ask == 0 || text.find("rank 1 ") != std::string::npos); ++ask) {
      text = transport->peers().progress_report(fingerprint);
    }
    if (rank == 0) asked = true;
    while (rank == 1 && !asked) EXPECT_TRUE(transport->peers().health().ok());
    step.arrive_and_wait();
  });
  EXPECT_EQ(text, "rank 2 (process 1002 on node2) did not answer (stopped, ended, unreachable, or busy outside libzero)");
}

TEST(Blame, AnAnswerFromTheSameCallIsNoSuspicion) {
  const Fingerprint mine = call(OperationKind::barrier, 3);
  PeerStatus answer{PeerStatus::inside, mine};
  EXPECT_TRUE(waits_in(&answer, mine));
  answer.where.count = 7;  // of no interest to who waits
  EXPECT_TRUE(waits_in(&answer, mine));
  EXPECT_FALSE(waits_in(nullptr, mine));
  EXPECT_FALSE(waits_in(&answer, call(OperationKind::barrier, 4)));
  EXPECT_FALSE(waits_in(&answer, call(OperationKind::all_reduce, 3)));
  for (const auto standing : {PeerStatus::outside, PeerStatus::failed, PeerStatus::gone, PeerStatus::messaging}) {
    answer.state = standing;
    EXPECT_FALSE(waits_in(&answer, mine));
  }
  const Fingerprint message = call(OperationKind::recv, 3);
  const PeerStatus same{PeerStatus::inside, message};
  EXPECT_FALSE(waits_in(&same, message));
}

TEST(Blame, FewOfManyRanksAreAskedBeside) {
  EXPECT_EQ(others_to_ask(4, {1, 2}), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(others_to_ask(2, {0, 1}).empty());
  EXPECT_LE(others_to_ask(1'000'000, {}).size(), 64U);
  EXPECT_GE(others_to_ask(1'000'000, {}).back(), 980'000);
}

}  // namespace
}  // namespace zero::test::blame_test
