/// @file Rendezvous with clients that break the protocol, read late or never, and with a process that has no descriptors left.
/// Knows sockets and ranks, not groups.
#include "group/local/rendezvous_root.h"
#include "tests/group/meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <optional>

namespace zero::rendezvous_breach_test {
namespace {

using test::connect_stranger;
using test::contains;
using test::fresh_name;
using test::hello_of;
using test::joiner_with;
#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
using test::NoMoreFiles;
#endif
using test::run_attempts;
using test::run_task;
using test::run_thread_ranks;
using test::terms_of;

/// Rank 0 of `size` meets as root while peers(root's name) plays the others over bare sockets; returns what rank 0 got.
template <class Peers>
Status meet_as_root(int64_t size, int64_t deadline_ms, Peers peers) {
  const std::string name = fresh_name();
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) status = run_attempts(name, {{0, size, 7, deadline_ms}})[0];
    if (who == 1) peers(name);
  });
  return status;
}

TEST(RendezvousBreach, AHelloFromNoRankOfTheGroupIsAnErrorThatNamesIt) {
  for (const int64_t rank : {int64_t{-1}, int64_t{2}}) {
    const Status status = meet_as_root(2, 20'000, [rank](const std::string &name) {
      OwnedFd peer(connect_stranger(name));
      send_packet(peer.get(), hello_of(rank, 2), {}, -1);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "came as rank " + std::to_string(rank) + " of 2")) << status.text();
  }
}

TEST(RendezvousBreach, ARankOfAnotherProcessNamespaceIsAnError) {
  const Status status = meet_as_root(2, 20'000, [](const std::string &name) {
    OwnedFd peer(connect_stranger(name));
    PacketHeader hello = hello_of(1, 2);
    hello.process += 1;
    send_packet(peer.get(), hello, {}, -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "one process namespace")) << status.text();
  EXPECT_TRUE(contains(status, "docker --pid") && contains(status, "ZERO_HOST_ID of its own")) << status.text();
}

/// Clients 1 .. size - 1 with the largest blobs, who then read nothing: a table is larger than a socket's buffer.
std::vector<OwnedFd> silent_clients(const std::string &name, int64_t size) {
  const std::vector<std::byte> blob(kMaxBlobBytes);
  std::vector<OwnedFd> clients;
  for (int64_t rank = 1; rank < size; ++rank) {
    clients.emplace_back(connect_stranger(name));
    send_packet(clients.back().get(), hello_of(rank, size), blob, -1);
  }
  return clients;
}

/// Waits for the root's first packet, which leaves it in the buffer.
void await_packet(const OwnedFd &client) {
  pollfd poll{client.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 20'000), 1);
}

TEST(RendezvousBreach, RanksThatReadLateGetTheWholeTableAndOneThatGoesKeepsNobody) {
  constexpr int64_t kSize = 150;
  std::vector<int64_t> entries(kSize, 0);
  const Status status = meet_as_root(kSize, 20'000, [&](const std::string &name) {
    std::vector<OwnedFd> clients = silent_clients(name, kSize);
    await_packet(clients.back());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    clients[0].reset(-1);
    for (size_t client = 1; client < clients.size(); ++client) {
      const Deadline deadline = Deadline::after_ms(20'000);
      while (entries[client] < kSize - 1 && !deadline.passed()) {
        Packet packet;
        if (receive_packet(clients[client].get(), &packet) == Received::packet) ++entries[client];
      }
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t client = 1; client + 1 < entries.size(); ++client) EXPECT_EQ(entries[client], kSize - 1) << client;
}

TEST(RendezvousBreach, RanksThatNeverReadTheTableAreMissingAtTheDeadline) {
  constexpr int64_t kSize = 150;
  const Status status = meet_as_root(kSize, 1'000, [](const std::string &name) {
    const std::vector<OwnedFd> clients = silent_clients(name, kSize);
    await_packet(clients.back());
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "missing: rank 1, rank 2")) << status.text();
}

/// Rank 0 of `size` as the root of a meeting, on this thread, and bare sockets that have connected to it.
struct LedMeeting {
  LedMeeting(int64_t size, int strangers) : terms(terms_of(fresh_name(), 0, size)) {
    OwnedFd listener;
    Role role = Role::again;
    EXPECT_TRUE(enter_meeting(terms.name, &listener, &role).ok());
    forked.reset(::dup(listener.get()));
    for (int i = 0; i < strangers; ++i) peers.emplace_back(connect_stranger(terms.name));
    root.emplace(std::move(listener), terms, &mine, &out);
  }

  Status look() { return root->poll(&met); }
  /// How many peers were told the cause.
  int64_t told(const Status &cause) {
    int64_t count = 0;
    for (const OwnedFd &peer : peers) {
      Packet packet;
      const bool refused = receive_packet(peer.get(), &packet) == Received::packet && packet.header.kind == PacketKind::refusal;
      const std::string text(reinterpret_cast<const char *>(packet.blob.data()), packet.blob.size());
      count += refused && text == cause.text() ? 1 : 0;
    }
    return count;
  }

  MeetingTerms terms;
  Joiner mine;
  std::vector<Joiner> out;
  std::vector<OwnedFd> peers;
  OwnedFd forked;  ///< a copy of the listener, as a process has that was forked
  std::optional<RendezvousRoot> root;
  bool met = false;
};

TEST(RendezvousBreach, AllWhoHaveComeLearnWhyTheMeetingEnds) {
  LedMeeting meeting(5, 4);
  PacketHeader other = hello_of(3, 5);
  other.agree = 8;
  // The last one has not said who it is.
  send_packet(meeting.peers[0].get(), hello_of(1, 5), {}, -1);
  send_packet(meeting.peers[1].get(), other, {}, -1);
  send_packet(meeting.peers[2].get(), hello_of(2, 5), {}, -1);
  const Status status = meeting.look();
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "differ in their build of libzero or in ZERO_KEY_STAGING_BYTES")) << status.text();
  EXPECT_EQ(meeting.told(status), 4);
}

TEST(RendezvousBreach, AFloodOfStrangersDoesNotKeepTheRootInOneLook) {
  const std::string name = fresh_name();
  OwnedFd listener;
  Role role = Role::again;
  ASSERT_TRUE(enter_meeting(name, &listener, &role).ok());
  ASSERT_EQ(role, Role::root);
  const OwnedFd kept(::dup(listener.get()));
  const MeetingTerms terms = terms_of(name, 0, 2);
  Joiner mine;
  std::vector<Joiner> out;
  RendezvousRoot root(std::move(listener), terms, &mine, &out);
  std::vector<OwnedFd> strangers;
  while (strangers.size() < 300) strangers.emplace_back(connect_stranger(name));
  bool ready = false;
  EXPECT_TRUE(root.poll(&ready).ok());
  const OwnedFd left(::accept4(kept.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  EXPECT_TRUE(left.valid()) << "all were accepted at one look";
}

TEST(RendezvousBreach, ACopyOfTheListenerThatAForkedProcessHoldsKeepsNobodyWaiting) {
  LedMeeting meeting(2, 1);
  send_packet(meeting.peers[0].get(), hello_of(1, 2), {}, -1);
  EXPECT_TRUE(meeting.look().ok());
  ASSERT_TRUE(meeting.met);
  OwnedFd socket;
  Role role = Role::root;
  EXPECT_TRUE(enter_meeting(meeting.terms.name, &socket, &role).ok());
  EXPECT_EQ(role, Role::again);
  const Status status = run_attempts(meeting.terms.name, {{0, 2, 7, 100}})[0];
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "a process forked while ranks met keeps the name taken")) << status.text();
  meeting.forked.reset(-1);
  EXPECT_TRUE(enter_meeting(meeting.terms.name, &socket, &role).ok());
  EXPECT_EQ(role, Role::root);
}

TEST(RendezvousBreach, ARankThatGoesRightAfterItsHelloMayComeAgain) {
  LedMeeting meeting(2, 2);
  send_packet(meeting.peers[0].get(), hello_of(1, 2), {}, -1);
  meeting.peers[0].reset(-1);
  EXPECT_TRUE(meeting.look().ok());
  EXPECT_FALSE(meeting.met);
  send_packet(meeting.peers[1].get(), hello_of(1, 2), {}, -1);
  EXPECT_TRUE(meeting.look().ok());
  EXPECT_TRUE(meeting.met);
}

/// The end of a peer that left something unread comes as an error before what it sent.
TEST(RendezvousBreach, WhatAPeerSaidBeforeItEndedIsHeardAlthoughItDidNotListen) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const OwnedFd mine(ends[0]);
  OwnedFd other(ends[1]);
  send_packet(mine.get(), hello_of(1, 2), {}, -1);
  send_packet(other.get(), hello_of(0, 2), {}, -1);
  other.reset(-1);
  Packet packet;
  EXPECT_EQ(receive_packet(mine.get(), &packet), Received::packet);
  EXPECT_EQ(receive_packet(mine.get(), &packet), Received::closed);
}

/// Makes the system take no more descriptors in flight from this process's unprivileged threads, until it is destroyed.
class DescriptorsInFlight {
 public:
  DescriptorsInFlight() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{100, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    for (int i = 0; i < 2; ++i) ends_[i].reset(ends[i]);
    char byte = 0;
    iovec part{&byte, 1};
    std::array<int, 200> files;
    files.fill(ends[0]);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof files);
    std::memcpy(CMSG_DATA(rights), files.data(), sizeof files);
    EXPECT_EQ(::sendmsg(ends[0], &message, 0), 1);
  }
  ~DescriptorsInFlight() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  OwnedFd ends_[2];
};

/// The system does not count for those who may do anything. Holds for this thread.
void give_up_privileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
}

TEST(RendezvousBreach, AHelloThatTheSystemDoesNotTakeIsSaidAgain) {
  const std::string name = fresh_name();
  std::optional<DescriptorsInFlight> full(std::in_place);
  std::atomic<bool> refused{false};
  std::vector<Status> results(2);
  run_thread_ranks(2, [&](int64_t rank) {
    if (rank == 0) {
      // When rank 1 has tried in vain.
      while (!refused) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      full.reset();
      return;
    }
    give_up_privileges();
    run_thread_ranks(2, [&](int64_t who) {
      if (who == 0) results[0] = run_attempts(name, {{0, 2, 7, 5'000}})[0];
      if (who == 0) return;
      const OwnedFd stranger(connect_stranger(name));
      Joiner mine = joiner_with("x");
      mine.fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      refused = send_packet(stranger.get(), hello_of(1, 2), {}, mine.fd.get()) == Sent::full;
      EXPECT_TRUE(refused) << "this system counts no descriptors in flight";
      std::vector<Joiner> out;
      results[1] = run_task(rendezvous(terms_of(name, 1, 2, 5'000), std::move(mine), &out));
      refused = true;
    });
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
}

#ifndef ZERO_TEST_KEEPS_DESCRIPTORS
TEST(RendezvousBreach, TooFewDescriptorsAreAnErrorThatSaysSo) {
  const Status root = meet_as_root(2, 20'000, [](const std::string &name) {
    const OwnedFd stranger(connect_stranger(name));
    const NoMoreFiles none;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(root.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(root, "too few file descriptors for 2 ranks")) << root.text();
  const NoMoreFiles none;
  OwnedFd socket;
  Role role = Role::again;
  const Status entered = enter_meeting("no files", &socket, &role);
  EXPECT_EQ(entered.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(entered, "cannot make a socket")) << entered.text();
}

TEST(RendezvousBreach, TooFewDescriptorsOfTheRootAreToldToAllWhoHaveCome) {
  // None for those who come; for some of them; for the first one's descriptor only, when all have been let in.
  for (const int more : {0, 2, 1}) {
    LedMeeting meeting(5, 4);
    const OwnedFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Status let_in = more != 2 ? meeting.look() : Status();
    EXPECT_TRUE(let_in.ok()) << let_in.text();
    for (int64_t rank = 1; rank < 5; ++rank) {
      EXPECT_EQ(send_packet(meeting.peers[static_cast<size_t>(rank - 1)].get(), hello_of(rank, 5), {}, file.get()), Sent::done);
    }
    Status status;
    {
      const NoMoreFiles few(more);
      status = meeting.look();
    }
    EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
    EXPECT_TRUE(contains(status, "too few file descriptors for 5 ranks to meet")) << status.text();
    EXPECT_EQ(meeting.told(status), 4) << more;
  }
}
#endif

}  // namespace
}  // namespace zero::rendezvous_breach_test
