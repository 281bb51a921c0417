/// @file Ranks over sockets that are sent what no rank would send.
#include "tests/group/local_ranks.h"
#include "tests/group/tcp_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <random>

namespace zero::tcp_breach_test {
namespace {

using test::await_failure;
using test::barrier;
using test::call;
using test::contains;
using test::own_hosts;
using test::run_task;
using test::TcpWorld;

/// Rank 0 of two, with the test at the other end of its connection.
class TcpGarbage : public testing::Test {
 protected:
  void SetUp() override { transport_ = world_.join(0); }
  TcpLink &link() { return world_.link(1, 0); }

  void send(TcpKind kind, uint64_t group, size_t nbytes, std::byte value = {}) {
    const TcpHead head = {kind, 0, group};
    const std::vector<std::byte> content(nbytes, value);
    link().send({bytes_of(head), content});
  }
  void expect_given_up() {
    const Status status = await_failure(*transport_);
    EXPECT_EQ(status.code(), ZERO_E_TRANSPORT) << status.text();
    EXPECT_TRUE(contains(status, "rank 1 (process 1001 on node1) sent what no rank would send")) << status.text();
  }
  void expect_ignored() {
    for (int look = 0; look < 5; ++look) EXPECT_TRUE(transport_->peers().health().ok());
  }

  TcpWorld world_{own_hosts(2)};
  std::shared_ptr<Transport> transport_;
};

TEST_F(TcpGarbage, FramesWithoutAHeadEndTheConnection) {
  const std::vector<std::byte> content(7);
  link().send({content});
  expect_given_up();
}

TEST_F(TcpGarbage, EmptyFramesEndTheConnection) {
  link().send({});
  expect_given_up();
}

TEST_F(TcpGarbage, UnknownKindsEndTheConnection) {
  send(static_cast<TcpKind>(99), TcpTransport::kFirstNumber, 100);
  expect_given_up();
}

TEST_F(TcpGarbage, FramesOfTheWrongLengthEndTheConnection) {
  for (const TcpKind kind :
       {TcpKind::round, TcpKind::offer, TcpKind::request, TcpKind::chunk, TcpKind::taken, TcpKind::poison, TcpKind::answer}) {
    world_ = TcpWorld(own_hosts(2));
    transport_ = world_.join(0);
    send(kind, TcpTransport::kFirstNumber, kind == TcpKind::chunk ? 0 : 3);
    expect_given_up();
  }
}

TEST_F(TcpGarbage, PoisonThatIsNoErrorEndsTheConnection) {
  send(TcpKind::poison, TcpTransport::kFirstNumber, 8);
  expect_given_up();
}

TEST_F(TcpGarbage, PoisonWithoutATextIsAnError) {
  send(TcpKind::poison, TcpTransport::kFirstNumber, 4, std::byte{0xff});
  EXPECT_EQ(await_failure(*transport_).code(), -1);
}

TEST_F(TcpGarbage, FramesLongerThanFramesCanBeEndTheConnection) {
  const uint32_t length = 0xffffffff;
  EXPECT_EQ(::send(link().socket(), &length, sizeof length, 0), 4);
  EXPECT_EQ(test::await(*transport_, [&](bool *) { return transport_->peers().watch(); }).code(), ZERO_E_PEER_LOST);
}

TEST_F(TcpGarbage, TooManyRoundsAndMessagesEndTheConnection) {
  for (int index = 0; index < 9; ++index) send(TcpKind::chunk, TcpTransport::kFirstNumber, 10);
  expect_given_up();
}

TEST_F(TcpGarbage, RepliesNobodyAskedForAreAnErrorOfTheMessage) {
  send(TcpKind::taken, TcpTransport::kFirstNumber, 8, std::byte{1});
  std::byte data{};
  const Status status = test::send(*transport_, 1, call(OperationKind::send, 1, 1), &data, 1);
  EXPECT_EQ(status.code(), ZERO_E_TRANSPORT);
  EXPECT_TRUE(contains(status, "out of order")) << status.text();
}

TEST_F(TcpGarbage, ChunksBeforeTheirNoticeAreAnErrorOfTheMessage) {
  send(TcpKind::chunk, TcpTransport::kFirstNumber, 1);
  std::byte data{7};
  const Status status = test::recv(*transport_, 1, call(OperationKind::recv, 1, 1), &data, 1);
  EXPECT_EQ(status.code(), ZERO_E_TRANSPORT);
  EXPECT_TRUE(contains(status, "out of order")) << status.text();
  EXPECT_EQ(data, std::byte{7});
}

TEST_F(TcpGarbage, ForeignGroupsAreKeptUntilTheyAreTooMuch) {
  for (uint64_t group = 1; group < 1000; ++group) send(TcpKind::round, group, 100);
  expect_ignored();
  for (int index = 0; index < 2000; ++index) {
    send(TcpKind::round, 77, 10'000);
    (void)transport_->peers().health();
  }
  expect_given_up();
}

TEST_F(TcpGarbage, FramesForAGroupThatIsMadeLaterAreLookedAtThen) {
  std::shared_ptr<Transport> group;
  ASSERT_TRUE(run_task(transport_->derive({0}, 0, 1000, &group)).ok());
  // Whose number that is is known: the same ranks get the same.
  TcpWorld other(own_hosts(2));
  const auto peer = other.join(1);
  std::shared_ptr<Transport> theirs;
  ASSERT_TRUE(run_task(peer->derive({0, 1}, 0, 1000, &theirs)).ok());
  theirs.reset();
  std::vector<std::byte> left;
  ASSERT_EQ(other.link(0, 1).receive(&left), TcpLink::Received::frame);
  TcpHead head;
  ASSERT_EQ(left.size(), sizeof head);
  std::memcpy(&head, left.data(), sizeof head);
  EXPECT_EQ(head.kind, TcpKind::left);
  send(TcpKind::round, head.group, 3);
  expect_ignored();
  ASSERT_TRUE(run_task(transport_->derive({0, 1}, 0, 1000, &group)).ok());
  EXPECT_EQ(group->peers().health().code(), ZERO_E_TRANSPORT);
  expect_given_up();
}

TEST_F(TcpGarbage, RandomBytesNeverCrash) {
  std::mt19937_64 random(7);
  for (int repeat = 0; repeat < 200; ++repeat) {
    world_ = TcpWorld(own_hosts(2));
    transport_ = world_.join(0);
    for (int frame = 0; frame < 10; ++frame) {
      std::vector<std::byte> content(random() % 200);
      for (std::byte &byte : content) byte = static_cast<std::byte>(random());
      const TcpHead head = {static_cast<TcpKind>(random() % 11), 0, random() % 3 == 0 ? random() : TcpTransport::kFirstNumber};
      link().send({bytes_of(head), content});
    }
    (void)transport_->peers().health();
    (void)barrier(*transport_, 1, 1);
    std::byte data[100];
    (void)test::recv(*transport_, 1, call(OperationKind::recv, 1, 100), data, 100, 1);
  }
}

}  // namespace
}  // namespace zero::tcp_breach_test
