/// @file Meetings over TCP among strangers, and with clients that break the protocol or go half-way.
/// Knows sockets and ranks, not groups.
#include "group/tcp/tcp_bootstrap_message.h"
#include "tests/group/tcp_meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <random>

namespace zero::tcp_meeting_breach_test {
namespace {

using test::attempt_to_meet;
using test::await_frame;
using test::connect_anybody;
using test::contains;
using test::fresh_id;
using test::open_descriptors;
using test::place_of;
using test::run_thread_ranks;
using test::TcpResult;
using Received = TcpLink::Received;

void say_raw(const OwnedFd &socket, const std::string &bytes) { ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

std::string raw(std::span<const std::byte> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         std::string(reinterpret_cast<const char *>(frame.data()), frame.size());
}

TcpHello hello_of(const std::string &id, int64_t rank, int64_t size) {
  TcpHello hello;
  hello.token = place_of(id).token;
  hello.instance = 99;
  hello.rank = rank;
  hello.size = size;
  hello.agree = 7;
  hello.who = {77, 1234, "elsewhere", {}};
  return hello;
}

/// Ranks 0 to size - 1 meet as hosts of their own once strangers(id) has begun; it is told when they have ended.
std::vector<TcpResult> meet_among(int64_t size, const std::string &id,
                                  const std::function<void(const std::string &, const std::atomic<int64_t> &)> &strangers) {
  std::vector<TcpResult> results(static_cast<size_t>(size));
  std::atomic<int64_t> ended{0};
  run_thread_ranks(size + 1, [&](int64_t who) {
    if (who == size) return strangers(id, ended);
    // Rank 1 comes when the strangers had their say.
    results[static_cast<size_t>(who)] = attempt_to_meet(id, {who, size, 7, 60'000, who == 1 ? 300 : 0, static_cast<uint64_t>(who) + 1});
    ++ended;
  });
  return results;
}

void expect_met(const std::vector<TcpResult> &results) {
  for (const TcpResult &result : results) EXPECT_TRUE(result.status.ok()) << result.status.text();
}

TEST(TcpMeetingBreach, StrangersAreIgnored) {
  const int64_t descriptors = open_descriptors();
  const auto flood = [](const std::string &id, const std::atomic<int64_t> &ended) {
    std::mt19937 random(1);
    const std::string hello = raw(write_hello(hello_of(id, 1, 3)).bytes());
    TcpHello other = hello_of(id, 1, 3);
    other.token = "another";
    std::string version = hello;
    version[sizeof(uint32_t) + sizeof(uint64_t)] = 2;
    std::vector<OwnedFd> open;
    for (int i = 0; i < 250 && ended == 0; ++i) {
      OwnedFd socket = connect_anybody(place_of(id).port);
      std::string bytes(random() % 300, '\0');
      for (char &letter : bytes) letter = static_cast<char>(random());
      if (i % 8 == 1) bytes = "GET / HTTP/1.1\r\nHost: node7\r\n\r\n";
      if (i % 8 == 2) bytes = hello.substr(0, random() % hello.size());
      if (i % 8 == 3) bytes = raw(write_hello(other).bytes());
      if (i % 8 == 4) bytes = version;
      if (i % 8 == 5) bytes = raw(TcpWriter(static_cast<TcpBootstrapWord>(random() % 12)).bytes()) + bytes;
      if (i % 8 == 5 && bytes.size() % 2 == 0) bytes.clear();
      if (i % 8 == 6) bytes = raw(TcpWriter(TcpBootstrapWord::hello).text(std::string(2000, 'x')).bytes());
      if (i % 8 == 7) bytes = raw(write_hello(other).number(uint64_t{1}).bytes());
      say_raw(socket, bytes);
      if (i % 5 == 0) open.push_back(std::move(socket));
    }
  };
  expect_met(meet_among(3, fresh_id(), flood));
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(TcpMeetingBreach, GarbageOfEveryLengthIsIgnored) {
  const std::string id = fresh_id();
  const std::string hello = raw(write_hello(hello_of(id, 1, 2)).bytes());
  std::vector<TcpResult> results(2);
  std::atomic<bool> ended{false};
  size_t nbytes = 0;
  std::vector<OwnedFd> open;  // who has gone is not heard
  run_thread_ranks(2, [&](int64_t rank) {
    for (; rank == 1 && nbytes < hello.size() && !ended; ++nbytes) {
      open.push_back(connect_anybody(place_of(id).port));
      say_raw(open.back(), hello.substr(0, nbytes));
      // A frame that is whole but shorter than what it should hold.
      if (nbytes < sizeof(uint32_t)) continue;
      open.push_back(connect_anybody(place_of(id).port));
      const std::string body = hello.substr(sizeof(uint32_t), nbytes - sizeof(uint32_t));
      say_raw(open.back(), raw(std::as_bytes(std::span(body))));
    }
    results[static_cast<size_t>(rank)] = attempt_to_meet(id, {rank, 2, 7, 20'000, 0, static_cast<uint64_t>(rank) + 1});
    ended = true;
  });
  EXPECT_EQ(nbytes, hello.size()) << "rank 0 did not wait for rank 1";
  expect_met(results);
}

TEST(TcpMeetingBreach, SilentConnectionsDoNotKeepRanksApart) {
  const int64_t descriptors = open_descriptors();
  const auto flood = [](const std::string &id, const std::atomic<int64_t> &ended) {
    std::vector<OwnedFd> open;
    while (open.size() < 300 && ended == 0) open.push_back(connect_anybody(place_of(id).port));
    while (ended < 3) test::sleep_ms(1);
  };
  expect_met(meet_among(3, fresh_id(), flood));
  EXPECT_EQ(open_descriptors(), descriptors);
}

/// Rank 0 of `size` leads while clients(id) plays the others over bare sockets; returns what rank 0 got.
Status lead(int64_t size, int64_t deadline_ms, const std::function<void(const std::string &)> &clients) {
  const std::string id = fresh_id();
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) status = attempt_to_meet(id, {0, size, 7, deadline_ms}).status;
    if (who == 1) clients(id);
  });
  return status;
}

/// A rank that is played: says hello and waits for an answer.
std::unique_ptr<TcpLink> join(const std::string &id, const TcpHello &hello, TcpBootstrapWord *answer) {
  auto link = std::make_unique<TcpLink>(connect_anybody(place_of(id).port));
  link->send({write_hello(hello).bytes()});
  std::vector<std::byte> frame;
  *answer = await_frame(link.get(), &frame) == Received::frame ? TcpReader(frame).word() : TcpBootstrapWord::none;
  return link;
}

TEST(TcpMeetingBreach, AClientThatIsNoRankOfTheGroupIsAnErrorThatNamesIt) {
  for (const int64_t rank : {-1, 0, 2}) {
    TcpBootstrapWord answer = TcpBootstrapWord::none;
    const Status status = lead(2, 60'000, [&](const std::string &id) { join(id, hello_of(id, rank, 2), &answer); });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "rank " + std::to_string(rank) + " (process 1234 on elsewhere)")) << status.text();
    EXPECT_EQ(answer, TcpBootstrapWord::refusal);
  }
}

TEST(TcpMeetingBreach, AClientWhoseConnectionBrokeReplacesItself) {
  TcpBootstrapWord answers[3] = {};
  const Status status = lead(3, 60'000, [&](const std::string &id) {
    const auto first = join(id, hello_of(id, 1, 3), &answers[0]);
    const auto second = join(id, hello_of(id, 1, 3), &answers[1]);
    TcpHello other = hello_of(id, 1, 3);
    other.instance = 100;
    join(id, other, &answers[2]);
  });
  EXPECT_TRUE(contains(status, "is here already")) << status.text();
  EXPECT_EQ(answers[0], TcpBootstrapWord::welcome);
  EXPECT_EQ(answers[1], TcpBootstrapWord::welcome);
  EXPECT_EQ(answers[2], TcpBootstrapWord::refusal);
}

TEST(TcpMeetingBreach, ARankThatGoesRightAfterItsHelloMayComeAgain) {
  const std::string id = fresh_id();
  {
    TcpLink gone(connect_anybody(place_of(id).port));
    gone.send({write_hello(hello_of(id, 1, 2)).bytes()});
  }
  // Rank 0 finds the hello and the end together.
  expect_met(test::run_tcp_attempts(id, {{0, 2, 7, 5'000, 0, 1}, {1, 2, 7, 5'000, 300, 2}}));
}

TEST(TcpMeetingBreach, WhoHasJoinedLearnsWhyTheMeetingEnds) {
  for (const int differs : {0, 1, 2}) {
    const Status status = lead(4, 60'000, [differs](const std::string &id) {
      TcpBootstrapWord answer = TcpBootstrapWord::none;
      const auto first = join(id, hello_of(id, 1, 4), &answer);
      EXPECT_EQ(answer, TcpBootstrapWord::welcome);
      TcpHello other = hello_of(id, differs == 0 ? 1 : 2, 4);
      other.instance = 100;
      if (differs == 1) other.agree = 8;
      if (differs == 2) other.size = 5;
      join(id, other, &answer);
      EXPECT_EQ(answer, TcpBootstrapWord::refusal);
      std::vector<std::byte> frame;
      ASSERT_EQ(await_frame(first.get(), &frame), Received::frame);
      EXPECT_EQ(TcpReader(frame).word(), TcpBootstrapWord::refusal);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  }
}

/// Reads all of a table of `size` ranks.
void read_table(TcpLink *link, int64_t size) {
  for (int64_t known = 0; known < size;) {
    std::vector<std::byte> frame;
    ASSERT_EQ(await_frame(link, &frame), Received::frame);
    TcpReader reader(frame);
    ASSERT_EQ(reader.word(), TcpBootstrapWord::entries);
    reader.number();
    EXPECT_EQ(reader.signed_number(), known);
    known += reader.signed_number();
  }
}

TEST(TcpMeetingBreach, AClientThatGoesBeforeAllAreConnectedIsNamed) {
  for (const bool ready : {false, true}) {
    TcpBootstrapWord answer = TcpBootstrapWord::none;
    const Status status = lead(3, 60'000, [&](const std::string &id) {
      auto one = join(id, hello_of(id, 1, 3), &answer);
      auto two = join(id, hello_of(id, 2, 3), &answer);
      read_table(one.get(), 3);
      if (ready) one->send({TcpWriter(TcpBootstrapWord::ready).bytes()});
      one.reset();
      std::vector<std::byte> frame;
      read_table(two.get(), 3);
      ASSERT_EQ(await_frame(two.get(), &frame), Received::frame);
      TcpReader reader(frame);
      ASSERT_EQ(reader.word(), TcpBootstrapWord::refusal);
      EXPECT_TRUE(contains(read_refusal(&reader), "rank 1 (process 1234 on elsewhere) ended"));
      EXPECT_EQ(await_frame(two.get(), &frame), Received::ended);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "rank 1 (process 1234 on elsewhere) ended before all ranks were connected")) << status.text();
  }
}

TEST(TcpMeetingBreach, ClientsThatAreNeverReadyAreNamedWithWhatTheyLack) {
  TcpBootstrapWord answer = TcpBootstrapWord::none;
  const Status status = lead(3, 1'500, [&](const std::string &id) {
    auto one = join(id, hello_of(id, 1, 3), &answer);
    auto two = join(id, hello_of(id, 2, 3), &answer);
    one->send({TcpWriter(TcpBootstrapWord::ready).bytes()});
    two->send({TcpWriter(TcpBootstrapWord::complaint).text("no road").bytes()});
    std::vector<std::byte> frame;
    while (await_frame(two.get(), &frame) == Received::frame) {
    }
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "not ready: rank 2 (process 1234 on elsewhere): no road.")) << status.text();
}

TEST(TcpMeetingBreach, AClientThatDoesNotKeepToTheProtocolIsNamed) {
  for (const TcpBootstrapWord word : {TcpBootstrapWord::hello, TcpBootstrapWord::go, TcpBootstrapWord::none}) {
    TcpBootstrapWord answer = TcpBootstrapWord::none;
    const Status status = lead(2, 60'000, [&](const std::string &id) {
      auto one = join(id, hello_of(id, 1, 2), &answer);
      read_table(one.get(), 2);
      one->send({TcpWriter(word).bytes()});
      std::vector<std::byte> frame;
      await_frame(one.get(), &frame);
    });
    EXPECT_TRUE(contains(status, "rank 1 (process 1234 on elsewhere) does not keep to the protocol")) << status.text();
  }
}

/// Frames that a rank sends once all have come go to who meets for, not to the meeting.
TEST(TcpMeetingBreach, WhatIsSentRightAfterGoIsForWhoMet) {
  const std::string id = fresh_id();
  TcpResult zero;
  TcpBootstrapWord answer = TcpBootstrapWord::none;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) zero = attempt_to_meet(id, {0, 2});
    if (who != 1) return;
    const auto link = join(id, hello_of(id, 1, 2), &answer);
    read_table(link.get(), 2);
    link->send({TcpWriter(TcpBootstrapWord::complaint).text("slow").bytes()});
    link->send({TcpWriter(TcpBootstrapWord::ready).bytes()});
    std::vector<std::byte> frame;
    ASSERT_EQ(await_frame(link.get(), &frame), Received::frame);
    EXPECT_EQ(TcpReader(frame).word(), TcpBootstrapWord::go);
    link->send({test::bytes_of("first")});
  });
  ASSERT_TRUE(zero.status.ok()) << zero.status.text();
  EXPECT_EQ(zero.peers[1].host_id, 77U);
  EXPECT_EQ(zero.peers[1].process, 1234);
  EXPECT_EQ(zero.peers[1].host_name, "elsewhere");
  std::vector<std::byte> frame;
  ASSERT_EQ(await_frame(zero.peers[1].link.get(), &frame), Received::frame);
  EXPECT_EQ(test::text_of(frame), "first");
}

TEST(TcpMeetingBreach, ARefusalWithoutACodeIsStillAnError) {
  for (const int64_t code : {int64_t{0}, int64_t{5}, INT64_MIN}) {
    TcpWriter writer(TcpBootstrapWord::refusal);
    writer.number(code).text("not you");
    const std::vector<std::byte> frame(writer.bytes().begin(), writer.bytes().end());
    TcpReader reader(frame);
    const Status status = read_refusal(&reader);
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "not you"));
  }
}

#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
TEST(TcpMeetingBreach, TooFewDescriptorsAreAnErrorThatSaysSo) {
  const std::string id = fresh_id();
  const test::NoMoreFiles none;
  const Status leader = attempt_to_meet(id, {0, 2}).status;
  EXPECT_EQ(leader.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(leader, "too few file descriptors")) << leader.text();
  const Status client = attempt_to_meet(id, {1, 2}).status;
  EXPECT_EQ(client.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(client, "cannot listen on port 0")) << client.text();
}
#endif

}  // namespace
}  // namespace zero::tcp_meeting_breach_test
