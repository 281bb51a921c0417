/// @file Meetings over TCP with leaders that break the protocol or go half-way.
/// Knows sockets and ranks, not groups.
#include "group/tcp/tcp_accept_queue.h"
#include "group/tcp/tcp_bootstrap_message.h"
#include "tests/group/tcp_meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <functional>

namespace zero::tcp_leader_breach_test {
namespace {

using test::attempt_to_meet;
using test::await_frame;
using test::connect_anybody;
using test::contains;
using test::fresh_id;
using test::run_thread_ranks;
using Received = TcpLink::Received;

/// Rank 1 of 3 meets while leader(listener) plays rank 0; returns what rank 1 got.
Status follow(int64_t deadline_ms, const std::function<void(TcpAcceptQueue *)> &leader) {
  const std::string id = fresh_id();
  TcpAcceptQueue accept_queue(take_listener(id), kLongestGreeting);
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) leader(&accept_queue);
    if (who == 1) status = attempt_to_meet(id, {1, 3, 7, deadline_ms}).status;
  });
  return status;
}

/// The next that says hello.
std::unique_ptr<TcpLink> next_client(TcpAcceptQueue *accept_queue) {
  const Deadline deadline = Deadline::after_ms(test::kWaitMs);
  std::vector<TcpArrival> arrivals;
  while (arrivals.empty() && !deadline.passed()) EXPECT_TRUE(accept_queue->look(&arrivals).ok());
  return arrivals.empty() ? nullptr : std::move(arrivals[0].link);
}

void welcome(TcpLink *link) { link->send({TcpWriter(TcpBootstrapWord::welcome).number(int64_t{4321}).text("far").bytes()}); }

/// What is told to rank 1 of 3 about `count` ranks from `first`, of which rank 2 is of another host.
TcpWriter entries(int64_t first, int64_t count) {
  TcpWriter writer(TcpBootstrapWord::entries);
  writer.number(uint64_t{5}).number(first).number(count);
  for (int64_t rank = first; rank < first + count; ++rank) writer.rank({rank == 2 ? 2U : 1U, 1234 + rank, "elsewhere", {}});
  return writer;
}

/// Until the client has closed its end.
void await_end(TcpLink *link) {
  std::vector<std::byte> frame;
  while (await_frame(link, &frame) == Received::frame) {
  }
}

TEST(TcpLeaderBreach, ALeaderThatGoesHalfWayIsNamed) {
  for (const int64_t told : {1, 3}) {
    const Status status = follow(60'000, [told](TcpAcceptQueue *accept_queue) {
      const auto client = next_client(accept_queue);
      welcome(client.get());
      client->send({entries(0, told).bytes()});
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "rank 0 (process 4321 on far), which led the meeting at 127.0.0.1:")) << status.text();
  }
}

TEST(TcpLeaderBreach, ALeaderThatGoesBeforeAllHaveComeIsLookedForAgain) {
  int64_t came = 0;
  const Status status = follow(60'000, [&came](TcpAcceptQueue *accept_queue) {
    for (int64_t i = 0; i < 6; ++i) {
      const auto client = next_client(accept_queue);
      ASSERT_NE(client, nullptr);
      ++came;
      if (i % 2 == 0) welcome(client.get());
      if (i == 3) client->send({test::bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n")});
    }
    const auto client = next_client(accept_queue);
    client->send({write_refusal(Status::error(ZERO_E_TIMEOUT, "not today")).bytes()});
    await_end(client.get());
  });
  EXPECT_EQ(came, 6);
  EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
  EXPECT_TRUE(contains(status, "not today")) << status.text();
}

TEST(TcpLeaderBreach, ALeaderThatDoesNotKeepToTheProtocolIsAnError) {
  const TcpWriter breaches[] = {entries(1, 2),
                                entries(0, 0),
                                entries(0, 4),
                                TcpWriter(TcpBootstrapWord::go),
                                TcpWriter(TcpBootstrapWord::hello),
                                TcpWriter(TcpBootstrapWord::entries)};
  for (const TcpWriter &breach : breaches) {
    const Status status = follow(60'000, [&breach](TcpAcceptQueue *accept_queue) {
      const auto client = next_client(accept_queue);
      welcome(client.get());
      client->send({breach.bytes()});
      await_end(client.get());
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "does not keep to the protocol")) << status.text();
  }
}

TEST(TcpLeaderBreach, ALeaderThatSaysNothingIsTheDeadlinesError) {
  for (const int said : {0, 1}) {
    const Status status = follow(500, [said](TcpAcceptQueue *accept_queue) {
      const auto client = next_client(accept_queue);
      if (said == 1) welcome(client.get());
      await_end(client.get());
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, said == 1 ? "led by process 4321 on far, was not complete" : "rank 0 did not answer")) << status.text();
  }
}

TEST(TcpLeaderBreach, ARankThatIsNotReachedIsNamedAndRankZeroIsTold) {
  std::string told;
  std::string complaint;
  const Status status = follow(2'500, [&](TcpAcceptQueue *accept_queue) {
    const auto client = next_client(accept_queue);
    welcome(client.get());
    client->send({entries(0, 3).bytes()});
    std::vector<std::byte> frame;
    while (await_frame(client.get(), &frame) == Received::frame) {
      TcpReader reader(frame);
      if (reader.word() == TcpBootstrapWord::complaint) complaint = reader.text(TcpWriter::kLongestText);
      if (reader.word() == TcpBootstrapWord::refusal) told = read_refusal(&reader).text();
    }
  });
  EXPECT_TRUE(contains(status, "rank 2 (process 1236 on elsewhere) has not connected to it")) << status.text();
  EXPECT_EQ(told, status.text());
  EXPECT_EQ(complaint, "rank 2 (process 1236 on elsewhere) has not connected to it");
}

/// A rank above that lost its connection before it was answered comes again, also when the rank below takes it for connected.
TEST(TcpLeaderBreach, ARankThatComesAgainIsGreetedAgain) {
  const auto greet = [](uint16_t port) {
    TcpLink link(connect_anybody(port));
    link.send({TcpWriter(TcpBootstrapWord::greeting).number(uint64_t{5}).number(int64_t{2}).bytes()});
    std::vector<std::byte> frame;
    EXPECT_EQ(await_frame(&link, &frame), Received::frame);
    return TcpReader(frame).word();
  };
  const Status status = follow(60'000, [&greet](TcpAcceptQueue *accept_queue) {
    const Deadline deadline = Deadline::after_ms(test::kWaitMs);
    std::vector<TcpArrival> arrivals;
    while (arrivals.empty() && !deadline.passed()) EXPECT_TRUE(accept_queue->look(&arrivals).ok());
    ASSERT_FALSE(arrivals.empty());
    TcpHello hello;
    ASSERT_TRUE(read_hello(arrivals[0].frame, &hello));
    TcpLink *client = arrivals[0].link.get();
    welcome(client);
    client->send({entries(0, 3).bytes()});
    EXPECT_EQ(greet(hello.who.address.port), TcpBootstrapWord::greeted);
    std::vector<std::byte> frame;
    while (await_frame(client, &frame) == Received::frame && TcpReader(frame).word() != TcpBootstrapWord::ready) {
    }
    EXPECT_EQ(greet(hello.who.address.port), TcpBootstrapWord::greeted);
    client->send({TcpWriter(TcpBootstrapWord::go).bytes()});
    await_end(client);
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace zero::tcp_leader_breach_test
