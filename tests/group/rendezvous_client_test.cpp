/// @file Rendezvous of clients whose root breaks the protocol, ends, or is not there. Knows sockets and ranks, not groups.
#include "group/local/rendezvous_socket.h"
#include "tests/group/meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace zero::rendezvous_client_test {
namespace {

using test::bind_raw;
using test::contains;
using test::fresh_name;
using test::hello_of;
#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
using test::NoMoreFiles;
#endif
using test::run_attempts;
using test::run_task;
using test::run_thread_ranks;
using test::terms_of;

/// Rank 1 of 3 meets a root that is played by answer(socket); returns what it got.
template <class Answer>
Status meet_as_client(Answer answer, std::function<Status()> watch = {}) {
  const std::string name = fresh_name();
  OwnedFd root;
  Role role = Role::again;
  EXPECT_TRUE(enter_meeting(name, &root, &role).ok());
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) {
      std::vector<Joiner> out;
      MeetingTerms terms = terms_of(name, 1, 3);
      terms.watch = std::move(watch);
      status = run_task(rendezvous(std::move(terms), {}, &out));
      return;
    }
    OwnedFd client;
    while (!client.valid()) client.reset(::accept(root.get(), nullptr, nullptr));
    root.reset(-1);
    // What a socket has not read when it is closed turns its end into an error that overtakes what it sent.
    Packet hello;
    while (receive_packet(client.get(), &hello) == Received::nothing) std::this_thread::yield();
    answer(client);
  });
  return status;
}

TEST(RendezvousClient, ARootThatDoesNotKeepToTheProtocolIsAnError) {
  for (const int broken : {0, 1, 2, 3, 4}) {
    const Status status = meet_as_client([broken](const OwnedFd &client) {
      PacketHeader entry = hello_of(broken == 1 ? -1 : broken == 2 ? 3 : broken == 3 ? 1 : 0, 3);
      entry.kind = broken == 0 ? PacketKind::hello : PacketKind::entry;
      if (broken == 4) entry.version = kMeetingVersion + 1;
      send_packet(client.get(), entry, {}, -1);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, broken == 4 ? "in version 2" : "does not keep to the protocol")) << status.text();
  }
}

TEST(RendezvousClient, ARefusalWithoutACodeIsStillAnError) {
  const Status status = meet_as_client([](const OwnedFd &client) {
    PacketHeader refusal = hello_of(0, 3);
    refusal.kind = PacketKind::refusal;
    const std::string text = "not you";
    send_packet(client.get(), refusal, std::as_bytes(std::span(text)), -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "not you")) << status.text();
}

/// Half of what rank 1 of 3 waits for.
void send_half_a_table(const OwnedFd &client) {
  PacketHeader entry = hello_of(0, 3);
  entry.kind = PacketKind::entry;
  send_packet(client.get(), entry, {}, -1);
}

TEST(RendezvousClient, ARootThatEndsHalfWayThroughTheTableIsNamed) {
  const std::function<Status()> sees_nothing = [] { return Status(); };
  for (const auto &watch : {std::function<Status()>(), sees_nothing}) {
    const Status status = meet_as_client(send_half_a_table, watch);
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "which led the meeting")) << status.text();
  }
}

/// A process's sockets close before its end can be seen, so a watch learns of it a moment later.
TEST(RendezvousClient, AWatchThatLearnsOfTheRootsEndALittleLaterIsHeard) {
  std::atomic<bool> sent{false};
  std::optional<Deadline> seen;
  const auto watch = [&] {
    if (!sent) return Status();
    if (!seen) seen = Deadline::after_ms(30);
    return seen->passed() ? Status::error(ZERO_E_PEER_LOST, "rank 0 ended") : Status();
  };
  const auto answer = [&](const OwnedFd &client) {
    send_half_a_table(client);
    sent = true;
  };
  const Status status = meet_as_client(answer, watch);
  EXPECT_EQ(status.code(), ZERO_E_PEER_LOST) << status.text();
}

TEST(RendezvousClient, AnAddressThatNobodyListensAtIsTheDeadlinesError) {
  const std::string name = fresh_name();
  const OwnedFd bound(bind_raw(name));
  ASSERT_TRUE(bound.valid());
  const auto results = run_attempts(name, {{0, 2, 7, 50}});
  EXPECT_EQ(results[0].code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[0], "no rank answered")) << results[0].text();
}

TEST(RendezvousClient, AClientsWatchEndsItsWaiting) {
  const std::string name = fresh_name();
  OwnedFd root;
  Role role = Role::again;
  ASSERT_TRUE(enter_meeting(name, &root, &role).ok());
  const Deadline until = Deadline::after_ms(30);
  MeetingTerms terms = terms_of(name, 1, 2);
  terms.watch = [&until] { return until.passed() ? Status::error(ZERO_E_ABORTED, "told to stop") : Status(); };
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(std::move(terms), {}, &out)).code(), ZERO_E_ABORTED);
}

#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
TEST(RendezvousClient, TooFewDescriptorsOfAClientAreItsErrorAtOnce) {
  for (const int64_t entries : {1, 2}) {
    std::optional<NoMoreFiles> few;
    const Status status = meet_as_client([&](const OwnedFd &client) {
      const OwnedFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      few.emplace();
      if (entries == 2) send_half_a_table(client);
      PacketHeader entry = hello_of(2, 3);
      entry.kind = PacketKind::entry;
      send_packet(client.get(), entry, {}, file.get());
    });
    EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
    EXPECT_TRUE(contains(status, "too few file descriptors for 3 ranks to meet")) << status.text();
  }
}
#endif

}  // namespace
}  // namespace zero::rendezvous_client_test
