/// @file Rendezvous with ranks as threads: everybody meets, or is told who is missing, doubled or different; strangers are ignored.
/// Knows sockets and ranks, not groups.
#include "group/rendezvous.h"

#include "core/clock.h"
#include "core/mapping.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace zero {
namespace {

using test::run_task;
using test::run_thread_ranks;

std::string fresh_name() { return "meeting." + std::to_string(random_u64()); }

int64_t open_descriptors() {
  int64_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

Joiner joiner_with(const std::string &text) {
  Joiner joiner;
  const auto bytes = std::as_bytes(std::span(text));
  joiner.blob.assign(bytes.begin(), bytes.end());
  return joiner;
}

std::string text_of(const Joiner &joiner) { return {reinterpret_cast<const char *>(joiner.blob.data()), joiner.blob.size()}; }

struct Attempt {
  int64_t rank = 0;
  int64_t size = 0;
  uint64_t agree = 7;
  int64_t deadline_ms = 20'000;
  int64_t delay_ms = 0;
};

/// Runs attempts at the same time and returns what each got.
std::vector<Status> run_attempts(const std::string &name, const std::vector<Attempt> &attempts) {
  std::vector<Status> results(attempts.size());
  run_thread_ranks(static_cast<int64_t>(attempts.size()), [&](int64_t index) {
    const Attempt &attempt = attempts[static_cast<size_t>(index)];
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt.delay_ms));
    std::vector<Joiner> out;
    results[static_cast<size_t>(index)] =
        run_task(rendezvous(name, attempt.rank, attempt.size, joiner_with("x"), attempt.agree, attempt.deadline_ms, &out));
  });
  return results;
}

bool contains(const Status &status, const std::string &part) { return std::string(status.text()).find(part) != std::string::npos; }

using Attach = int (*)(int, const sockaddr *, socklen_t);

/// An abstract socket that is connected or bound to the name, or -1.
int attach_raw(const std::string &name, int type, Attach attach) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "libzero." + std::to_string(::geteuid()) + "." + name;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (attach(fd, reinterpret_cast<const sockaddr *>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}
int connect_raw(const std::string &name, int type) { return attach_raw(name, type, ::connect); }
int bind_raw(const std::string &name) { return attach_raw(name, SOCK_SEQPACKET, ::bind); }

/// Connects as soon as somebody leads the meeting.
int connect_stranger(const std::string &name) {
  for (;;) {
    const int fd = connect_raw(name, SOCK_SEQPACKET);
    if (fd >= 0) return fd;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

class RendezvousOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RendezvousOfSize, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 33));

TEST_P(RendezvousOfSize, EveryRankLearnsWhatTheOthersBring) {
  const int64_t size = GetParam();
  const int64_t descriptors = open_descriptors();
  const std::string name = fresh_name();
  std::vector<std::string> seen(static_cast<size_t>(size));
  run_thread_ranks(size, [&](int64_t rank) {
    std::vector<Joiner> out;
    const Status status = run_task(rendezvous(name, rank, size, joiner_with("blob of " + std::to_string(rank)), 7, 20'000, &out));
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(out.size(), static_cast<size_t>(size));
    for (int64_t peer = 0; peer < size; ++peer) {
      EXPECT_EQ(out[static_cast<size_t>(peer)].process, ::getpid());
      EXPECT_EQ(out[static_cast<size_t>(peer)].same_process, peer != rank);
      seen[static_cast<size_t>(rank)] += text_of(out[static_cast<size_t>(peer)]) + ";";
    }
  });
  std::string wanted;
  for (int64_t peer = 0; peer < size; ++peer) wanted += "blob of " + std::to_string(peer) + ";";
  for (const std::string &text : seen) EXPECT_EQ(text, wanted);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(Rendezvous, BlobsOfTheGreatestSizeArriveAndGreaterOnesAreRefused) {
  const std::string name = fresh_name();
  const std::string blob(kMaxBlobBytes, 'b');
  run_thread_ranks(3, [&](int64_t rank) {
    std::vector<Joiner> out;
    const Status status = run_task(rendezvous(name, rank, 3, joiner_with(blob), 7, 20'000, &out));
    ASSERT_TRUE(status.ok()) << status.text();
    for (const Joiner &joiner : out) EXPECT_EQ(text_of(joiner), blob);
  });
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(name, 0, 2, joiner_with(blob + "b"), 7, 100, &out)).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(Rendezvous, RanksOutsideTheSizeAreRefused) {
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(fresh_name(), 2, 2, {}, 7, 100, &out)).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(run_task(rendezvous(fresh_name(), -1, 2, {}, 7, 100, &out)).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(Rendezvous, NamesThatAreTooLongForAnAddressStillMeet) {
  const std::string prefix(200, 'n');
  for (const Status &status : run_attempts(prefix + fresh_name(), {{0, 2}, {1, 2}})) EXPECT_TRUE(status.ok()) << status.text();
  // Names that differ only past the limit do not meet.
  std::vector<Status> results(2);
  run_thread_ranks(2, [&](int64_t rank) {
    std::vector<Joiner> out;
    results[static_cast<size_t>(rank)] = run_task(rendezvous(prefix + std::to_string(rank), rank, 2, {}, 7, 100, &out));
  });
  for (const Status &status : results) EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
}

TEST(Rendezvous, MissingRanksAreNamedToAllWhoCame) {
  const int64_t descriptors = open_descriptors();
  const auto results = run_attempts(fresh_name(), {{0, 4, 7, 150}, {2, 4, 7, 10'000, 30}});
  for (const Status &status : results) {
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "2 of 4 ranks")) << status.text();
    EXPECT_TRUE(contains(status, "missing: rank 1, rank 3")) << status.text();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(Rendezvous, ManyMissingRanksAreCounted) {
  const auto results = run_attempts(fresh_name(), {{0, 100, 7, 50}});
  EXPECT_TRUE(contains(results[0], "rank 16 and 83 more")) << results[0].text();
}

TEST(Rendezvous, RankWhoseDeadlineComesFirstSaysWhatItKnows) {
  const auto results = run_attempts(fresh_name(), {{0, 3, 7, 400}, {1, 3, 7, 100, 50}});
  EXPECT_EQ(results[1].code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[1], "led by process " + std::to_string(::getpid()))) << results[1].text();
  // To the hub, the rank that gave up is missing.
  EXPECT_TRUE(contains(results[0], "missing: rank 1, rank 2")) << results[0].text();
}

TEST(Rendezvous, DoubledRankIsAnErrorForAllWhoCame) {
  for (const int64_t doubled : {0, 1}) {
    const auto results = run_attempts(fresh_name(), {{0, 3}, {1, 3, 7, 20'000, 20}, {doubled, 3, 7, 20'000, 60}});
    for (const Status &status : results) {
      EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
      EXPECT_TRUE(contains(status, "rank " + std::to_string(doubled) + " came twice")) << status.text();
    }
  }
}

TEST(Rendezvous, DisagreeingSizesAreBothNamed) {
  for (const Status &status : run_attempts(fresh_name(), {{0, 2}, {1, 3, 7, 20'000, 30}})) {
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "expects 3 ranks") && contains(status, "expects 2")) << status.text();
  }
}

TEST(Rendezvous, DisagreeingSettingsAreAnErrorOnAllRanks) {
  for (const Status &status : run_attempts(fresh_name(), {{0, 2, 0xaa}, {1, 2, 0xbb, 20'000, 30}})) {
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "00aa") && contains(status, "00bb")) << status.text();
  }
}

TEST(Rendezvous, AnotherWireVersionIsAnErrorThatNamesBoth) {
  const std::string name = fresh_name();
  Status status;
  run_thread_ranks(2, [&](int64_t rank) {
    if (rank == 0) {
      status = run_attempts(name, {{0, 2}})[0];
      return;
    }
    OwnedFd stranger(connect_stranger(name));
    PacketHeader hello;
    hello.version = kMeetingVersion + 1;
    send_packet(stranger.get(), hello, {}, -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "version 2") && contains(status, "version 1")) << status.text();
}

TEST(Rendezvous, StrangersAreIgnored) {
  const int64_t descriptors = open_descriptors();
  const std::string name = fresh_name();
  std::vector<Status> results(2);
  run_thread_ranks(3, [&](int64_t who) {
    if (who == 0) results[0] = run_attempts(name, {{0, 2}})[0];
    if (who == 1) results[1] = run_attempts(name, {{1, 2, 7, 20'000, 400}})[0];
    if (who != 2) return;
    std::mt19937 random(1);
    std::vector<OwnedFd> sockets;
    EXPECT_LT(connect_raw(name, SOCK_STREAM), 0);
    sockets.emplace_back(connect_stranger(name));  // says nothing and stays
    for (int i = 0; i < 300; ++i) {
      OwnedFd stranger(connect_stranger(name));
      std::vector<uint8_t> bytes(1 + random() % 6000);
      for (uint8_t &byte : bytes) byte = static_cast<uint8_t>(random());
      PacketHeader hello;  // a hello that ends early, a blob longer than it says, a kind that only hubs send
      if (i % 4 > 1) bytes.resize(std::max(bytes.size(), sizeof hello));
      if (i % 4 == 1) bytes.resize(sizeof hello - 1);
      if (i % 4 == 2) hello.blob_nbytes = 5;
      if (i % 4 == 3) hello.kind = PacketKind::entry;
      if (i % 4 != 0) std::memcpy(bytes.data(), &hello, std::min(bytes.size(), sizeof hello));
      ::send(stranger.get(), bytes.data(), i % 4 == 2 ? sizeof hello : bytes.size(), MSG_NOSIGNAL);
      if (i % 5 == 0) sockets.push_back(std::move(stranger));
    }
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(open_descriptors(), descriptors);
}

/// Rank 0 of `size` meets as hub while peers(hub's name) plays the others over bare sockets; returns what rank 0 got.
template <class Peers>
Status meet_as_hub(int64_t size, int64_t deadline_ms, Peers peers) {
  const std::string name = fresh_name();
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) status = run_attempts(name, {{0, size, 7, deadline_ms}})[0];
    if (who == 1) peers(name);
  });
  return status;
}

PacketHeader hello_of(int64_t rank, int64_t size) {
  PacketHeader hello;
  hello.rank = rank;
  hello.size = size;
  hello.process = ::getpid();
  hello.agree = 7;
  return hello;
}

TEST(Rendezvous, AHelloFromNoRankOfTheGroupIsAnErrorThatNamesIt) {
  for (const int64_t rank : {int64_t{-1}, int64_t{2}}) {
    const Status status = meet_as_hub(2, 20'000, [rank](const std::string &name) {
      OwnedFd peer(connect_stranger(name));
      send_packet(peer.get(), hello_of(rank, 2), {}, -1);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, "came as rank " + std::to_string(rank) + " of 2")) << status.text();
  }
}

TEST(Rendezvous, ARankOfAnotherProcessNamespaceIsAnError) {
  const Status status = meet_as_hub(2, 20'000, [](const std::string &name) {
    OwnedFd peer(connect_stranger(name));
    PacketHeader hello = hello_of(1, 2);
    hello.process += 1;
    send_packet(peer.get(), hello, {}, -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "one process namespace")) << status.text();
}

/// Guests 1 .. size - 1 with the largest blobs, who then read nothing: a table is larger than a socket's buffer.
std::vector<OwnedFd> silent_guests(const std::string &name, int64_t size) {
  const std::vector<std::byte> blob(kMaxBlobBytes);
  std::vector<OwnedFd> guests;
  for (int64_t rank = 1; rank < size; ++rank) {
    guests.emplace_back(connect_stranger(name));
    send_packet(guests.back().get(), hello_of(rank, size), blob, -1);
  }
  return guests;
}

/// Waits for the hub's first packet, which leaves it in the buffer.
void await_packet(const OwnedFd &guest) {
  pollfd poll{guest.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 20'000), 1);
}

TEST(Rendezvous, RanksThatReadLateGetTheWholeTableAndOneThatGoesKeepsNobody) {
  constexpr int64_t kSize = 150;
  std::vector<int64_t> entries(kSize, 0);
  const Status status = meet_as_hub(kSize, 20'000, [&](const std::string &name) {
    std::vector<OwnedFd> guests = silent_guests(name, kSize);
    await_packet(guests.back());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    guests[0].reset(-1);
    for (size_t guest = 1; guest < guests.size(); ++guest) {
      const Deadline deadline = Deadline::after_ms(20'000);
      while (entries[guest] < kSize - 1 && !deadline.passed()) {
        Packet packet;
        if (receive_packet(guests[guest].get(), &packet) == Received::packet) ++entries[guest];
      }
    }
  });
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t guest = 1; guest + 1 < entries.size(); ++guest) EXPECT_EQ(entries[guest], kSize - 1) << guest;
}

TEST(Rendezvous, RanksThatNeverReadTheTableAreMissingAtTheDeadline) {
  constexpr int64_t kSize = 150;
  const Status status = meet_as_hub(kSize, 1'000, [](const std::string &name) {
    const std::vector<OwnedFd> guests = silent_guests(name, kSize);
    await_packet(guests.back());
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "missing: rank 1, rank 2")) << status.text();
}

/// Rank 1 of 3 meets a hub that is played by answer(socket); returns what it got.
template <class Answer>
Status meet_as_guest(Answer answer, int64_t deadline_ms = 20'000) {
  const std::string name = fresh_name();
  OwnedFd hub;
  Role role = Role::again;
  EXPECT_TRUE(enter_meeting(name, &hub, &role).ok());
  Status status;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) {
      status = run_attempts(name, {{1, 3, 7, deadline_ms}})[0];
      return;
    }
    OwnedFd guest;
    while (!guest.valid()) guest.reset(::accept(hub.get(), nullptr, nullptr));
    hub.reset(-1);
    // What a socket has not read when it is closed turns its end into an error that overtakes what it sent.
    Packet hello;
    while (receive_packet(guest.get(), &hello) == Received::nothing) std::this_thread::yield();
    answer(guest);
  });
  return status;
}

TEST(Rendezvous, AHubThatDoesNotKeepToTheProtocolIsAnError) {
  for (const int broken : {0, 1, 2, 3, 4}) {
    const Status status = meet_as_guest([broken](const OwnedFd &guest) {
      PacketHeader entry = hello_of(broken == 1 ? -1 : broken == 2 ? 3 : broken == 3 ? 1 : 0, 3);
      entry.kind = broken == 0 ? PacketKind::hello : PacketKind::entry;
      if (broken == 4) entry.version = kMeetingVersion + 1;
      send_packet(guest.get(), entry, {}, -1);
    });
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(status, broken == 4 ? "in version 2" : "does not keep to the protocol")) << status.text();
  }
}

TEST(Rendezvous, ARefusalWithoutACodeIsStillAnError) {
  const Status status = meet_as_guest([](const OwnedFd &guest) {
    PacketHeader refusal = hello_of(0, 3);
    refusal.kind = PacketKind::refusal;
    const std::string text = "not you";
    send_packet(guest.get(), refusal, std::as_bytes(std::span(text)), -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "not you")) << status.text();
}

TEST(Rendezvous, AHubThatEndsHalfWayThroughTheTableIsNamed) {
  const Status status = meet_as_guest([](const OwnedFd &guest) {
    PacketHeader entry = hello_of(0, 3);
    entry.kind = PacketKind::entry;
    send_packet(guest.get(), entry, {}, -1);
  });
  EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(status, "which led the meeting")) << status.text();
}

TEST(Rendezvous, AnAddressThatNobodyListensAtIsTheDeadlinesError) {
  const std::string name = fresh_name();
  const OwnedFd bound(bind_raw(name));
  ASSERT_TRUE(bound.valid());
  const auto results = run_attempts(name, {{0, 2, 7, 50}});
  EXPECT_EQ(results[0].code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[0], "no rank could be reached")) << results[0].text();
}

TEST(Rendezvous, AGuestsWatchEndsItsWaiting) {
  const std::string name = fresh_name();
  OwnedFd hub;
  Role role = Role::again;
  ASSERT_TRUE(enter_meeting(name, &hub, &role).ok());
  const Deadline until = Deadline::after_ms(30);
  const Watch watch = [&until] { return until.passed() ? Status::error(ZERO_E_ABORTED, "told to stop") : Status(); };
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(name, 1, 2, {}, 7, 20'000, &out, watch)).code(), ZERO_E_ABORTED);
}

/// While it lives, this process can open no more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Rendezvous, TooFewDescriptorsAreAnErrorThatSaysSo) {
  const Status hub = meet_as_hub(2, 20'000, [](const std::string &name) {
    const OwnedFd stranger(connect_stranger(name));
    const NoMoreFiles none;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(hub.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(hub, "too few file descriptors for 2 ranks")) << hub.text();
  const NoMoreFiles none;
  OwnedFd socket;
  Role role = Role::again;
  const Status entered = enter_meeting("no files", &socket, &role);
  EXPECT_EQ(entered.code(), ZERO_E_SYSTEM);
  EXPECT_TRUE(contains(entered, "cannot make a socket")) << entered.text();
}

TEST(Rendezvous, AThousandSilentConnectionsDoNotKeepRanksApart) {
  const std::string name = fresh_name();
  std::vector<Status> results(2);
  run_thread_ranks(3, [&](int64_t who) {
    if (who == 0) results[0] = run_attempts(name, {{0, 2}})[0];
    if (who == 1) results[1] = run_attempts(name, {{1, 2, 7, 20'000, 300}})[0];
    if (who != 2) return;
    std::vector<OwnedFd> sockets;
    sockets.emplace_back(connect_stranger(name));
    while (sockets.size() < 1000) {
      const int fd = connect_raw(name, SOCK_SEQPACKET);
      if (fd < 0) break;
      sockets.emplace_back(fd);
    }
    EXPECT_GT(sockets.size(), 300U);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Rendezvous, ARankThatWentMayComeAgain) {
  const std::string name = fresh_name();
  const auto results = run_attempts(name, {{0, 3, 7, 5'000}, {1, 3, 7, 50, 20}, {1, 3, 7, 5'000, 150}, {2, 3, 7, 5'000, 250}});
  EXPECT_EQ(results[1].code(), ZERO_E_RENDEZVOUS);
  for (const size_t index : {size_t{0}, size_t{2}, size_t{3}}) EXPECT_TRUE(results[index].ok()) << results[index].text();
}

TEST(Rendezvous, AHubThatGivesUpWithoutAWordIsReplaced) {
  const std::string name = fresh_name();
  OwnedFd hub;
  Role role = Role::again;
  ASSERT_TRUE(enter_meeting(name, &hub, &role).ok());
  ASSERT_EQ(role, Role::hub);
  std::vector<Status> results;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) results = run_attempts(name, {{0, 2}, {1, 2}});
    if (who == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      hub.reset(-1);
    }
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Rendezvous, AWatchEndsTheMeetingForAllWhoCame) {
  const std::string name = fresh_name();
  const Deadline until = Deadline::after_ms(50);
  std::vector<Status> results(2);
  run_thread_ranks(2, [&](int64_t rank) {
    Watch watch;
    if (rank == 0) {
      watch = [&until] { return until.passed() ? Status::error(ZERO_E_ABORTED, "told to stop") : Status(); };
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::vector<Joiner> out;
    results[static_cast<size_t>(rank)] = run_task(rendezvous(name, rank, 3, {}, 7, 20'000, &out, watch));
  });
  for (const Status &status : results) EXPECT_EQ(status.code(), ZERO_E_ABORTED) << status.text();
}

TEST(Rendezvous, OneNameServesMeetingAfterMeeting) {
  const int64_t descriptors = open_descriptors();
  const std::string name = fresh_name();
  std::atomic<int64_t> failed{0};
  run_thread_ranks(4, [&](int64_t rank) {
    for (int round = 0; round < 200; ++round) {
      std::vector<Joiner> out;
      const std::string blob = std::to_string(round);
      const Status status = run_task(rendezvous(name, rank, 4, joiner_with(blob), 7, 20'000, &out));
      ASSERT_TRUE(status.ok()) << "round " << round << ": " << status.text();
      for (const Joiner &joiner : out) failed += text_of(joiner) == blob ? 0 : 1;
    }
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace zero
