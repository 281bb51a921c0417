/// @file Meetings over TCP with ranks as threads that pass for hosts: everybody meets and is connected, or is told who is missing, doubled
/// or different. Knows sockets and ranks, not groups.
#include "tests/group/tcp_meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>

namespace zero::tcp_meeting_test {
namespace {

using test::await_frame;
using test::bytes_of;
using test::contains;
using test::fresh_id;
using test::open_descriptors;
using test::run_tcp_attempts;
using test::run_thread_ranks;
using test::TcpAttempt;
using test::TcpResult;
using test::text_of;
using test::unheld_id;

/// What `from` says to `to`.
std::string words(int64_t from, int64_t to) { return "from " + std::to_string(from) + " to " + std::to_string(to); }

/// Checks what each rank got: the others as they are, one name, and a link that works both ways to exactly the ranks of other hosts.
void check_met(std::vector<TcpResult> *results, const std::vector<TcpAttempt> &attempts) {
  const size_t size = attempts.size();
  for (const TcpResult &result : *results) {
    ASSERT_TRUE(result.status.ok()) << result.status.text();
    ASSERT_EQ(result.peers.size(), size);
    EXPECT_EQ(result.name, results->front().name);
  }
  std::vector<size_t> at(size);
  for (size_t i = 0; i < size; ++i) at[static_cast<size_t>(attempts[i].rank)] = i;
  const auto each_link = [&](auto &&look) {
    for (size_t mine = 0; mine < size; ++mine) {
      for (size_t peer = 0; peer < size; ++peer) look(mine, peer, (*results)[at[mine]].peers[peer].link.get());
    }
  };
  each_link([&](size_t mine, size_t peer, TcpLink *link) {
    const TcpPeer &told = (*results)[at[mine]].peers[peer];
    EXPECT_EQ(told.host_id, attempts[at[peer]].host_id);
    EXPECT_EQ(told.process, ::getpid());
    EXPECT_FALSE(told.host_name.empty());
    ASSERT_EQ(link != nullptr, attempts[at[mine]].host_id != attempts[at[peer]].host_id) << mine << " and " << peer;
    if (link != nullptr) link->send({bytes_of(words(static_cast<int64_t>(mine), static_cast<int64_t>(peer)))});
  });
  each_link([&](size_t mine, size_t peer, TcpLink *link) {
    if (link == nullptr) return;
    std::vector<std::byte> frame;
    ASSERT_EQ(await_frame(link, &frame), TcpLink::Received::frame);
    EXPECT_EQ(text_of(frame), words(static_cast<int64_t>(peer), static_cast<int64_t>(mine)));
  });
}

class TcpMeetingOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, TcpMeetingOfSize, testing::Values(1, 2, 3, 5, 8));

TEST_P(TcpMeetingOfSize, RanksOfDifferentHostsAreConnectedEachToEach) {
  const int64_t descriptors = open_descriptors();
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  for (int round = 0; round < 12; ++round) {
    std::vector<TcpAttempt> attempts;
    const uint64_t hosts = 1 + random() % static_cast<uint64_t>(GetParam());
    for (int64_t rank = 0; rank < GetParam(); ++rank) {
      // First at once, then late and in any order.
      const int64_t delay_ms = round < 4 ? 0 : static_cast<int64_t>(random() % 40);
      attempts.push_back({rank, GetParam(), 7, 60'000, delay_ms, 1 + random() % hosts});
    }
    std::shuffle(attempts.begin(), attempts.end(), random);
    auto results = run_tcp_attempts(round % 2 == 0 ? fresh_id() : unheld_id(), attempts);
    check_met(&results, attempts);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(TcpMeeting, RanksOfManyHostsMeet) {
  std::vector<TcpAttempt> attempts;
  for (int64_t rank = 0; rank < 20; ++rank) attempts.push_back({rank, 20, 7, 60'000, 0, 1 + static_cast<uint64_t>(rank)});
  auto results = run_tcp_attempts(fresh_id(), attempts);
  check_met(&results, attempts);
}

TEST(TcpMeeting, ARankAloneOpensNothingAndLetsGoOfItsPort) {
  const int64_t descriptors = open_descriptors();
  const std::string id = fresh_id();
  const std::vector<TcpAttempt> attempts{{0, 1}};
  auto results = run_tcp_attempts(id, attempts);
  check_met(&results, attempts);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_NE(run_tcp_attempts(id, attempts)[0].name, results[0].name);
}

TEST(TcpMeeting, WithoutAHostIdRanksOfOneProcessAreOfOneHost) {
  const auto results = run_tcp_attempts(fresh_id(), {{0, 2, 7, 60'000, 0, 0}, {1, 2, 7, 60'000, 0, 0}});
  for (const TcpResult &result : results) {
    ASSERT_TRUE(result.status.ok()) << result.status.text();
    EXPECT_EQ(result.peers[0].host_id, result.peers[1].host_id);
    EXPECT_EQ(result.peers[0].link, nullptr);
    EXPECT_EQ(result.peers[1].link, nullptr);
  }
}

TEST(TcpMeeting, OneIdServesMeetingAfterMeeting) {
  const int64_t descriptors = open_descriptors();
  const std::string id = unheld_id();
  std::set<uint64_t> names;
  for (int round = 0; round < 20; ++round) {
    const std::vector<TcpAttempt> attempts{{0, 3, 7, 60'000, 0, 1}, {1, 3, 7, 60'000, 0, 2}, {2, 3, 7, 60'000, 0, 3}};
    auto results = run_tcp_attempts(id, attempts);
    check_met(&results, attempts);
    names.insert(results[0].name);
  }
  EXPECT_EQ(names.size(), 20U);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(TcpMeeting, HostsAreReachedByNameAndByOtherAddressesThanTheLoopback) {
  for (const std::string &host : {std::string("localhost"), address_of_this_host()}) {
    const std::vector<TcpAttempt> attempts{{0, 3, 7, 60'000, 0, 1}, {1, 3, 7, 60'000, 0, 2}, {2, 3, 7, 60'000, 0, 3}};
    auto results = run_tcp_attempts(fresh_id(host), attempts);
    check_met(&results, attempts);
  }
}

TEST(TcpMeeting, RanksMeetOverIpv6) {
  OwnedFd probe;
  std::vector<TcpAddress> addresses;
  const bool known = resolve_host("::1", 1, &addresses).empty() && begin_connection(addresses[0], &probe) != EADDRNOTAVAIL;
  if (!known || !probe.valid()) GTEST_SKIP() << "this machine has no IPv6";
  for (const bool held : {true, false}) {
    const std::string id = held ? fresh_id("::1") : unheld_id("::1");
    EXPECT_EQ(id.substr(0, 6), "[::1]:");
    const std::vector<TcpAttempt> attempts{{0, 3, 7, 60'000, 0, 1}, {1, 3, 7, 60'000, 0, 2}, {2, 3, 7, 60'000, 0, 3}};
    auto results = run_tcp_attempts(id, attempts);
    check_met(&results, attempts);
  }
}

TEST(TcpMeeting, MissingRanksAreNamedToAllWhoCame) {
  const int64_t descriptors = open_descriptors();
  const auto results = run_tcp_attempts(fresh_id(), {{0, 4, 7, 1'500}, {2, 4, 7, 60'000, 0, 2}});
  for (const TcpResult &result : results) {
    EXPECT_EQ(result.status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(result.status, "2 of 4 ranks")) << result.status.text();
    EXPECT_TRUE(contains(result.status, "missing: rank 1, rank 3")) << result.status.text();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(TcpMeeting, ManyMissingRanksAreCounted) {
  const auto results = run_tcp_attempts(fresh_id(), {{0, 100, 7, 50}});
  EXPECT_TRUE(contains(results[0].status, "rank 16 and 83 more")) << results[0].status.text();
}

TEST(TcpMeeting, ARankWhoseDeadlineComesFirstSaysWhatItKnows) {
  const auto results = run_tcp_attempts(fresh_id(), {{0, 3, 7, 5'000}, {1, 3, 7, 1'000, 0, 2}});
  EXPECT_EQ(results[1].status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[1].status, "led by process " + std::to_string(::getpid()))) << results[1].status.text();
  EXPECT_TRUE(contains(results[1].status, "was not complete")) << results[1].status.text();
  // To rank 0, the rank that gave up is missing.
  EXPECT_TRUE(contains(results[0].status, "missing: rank 1, rank 2")) << results[0].status.text();
}

TEST(TcpMeeting, ARankThatFindsNobodySaysWhere) {
  const int64_t descriptors = open_descriptors();
  const std::string id = unheld_id();
  const auto results = run_tcp_attempts(id, {{1, 2, 7, 200}});
  EXPECT_EQ(results[0].status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[0].status, "nobody answered at " + test::place_of(id).text())) << results[0].status.text();
  EXPECT_TRUE(contains(results[0].status, "refused")) << results[0].status.text();
  EXPECT_FALSE(contains(results[0].status, test::place_of(id).token)) << results[0].status.text();
  EXPECT_EQ(open_descriptors(), descriptors);
}

/// A listener whose queue is full drops what comes, as a host does that is cut off.
TEST(TcpMeeting, AnAddressThatDropsWhatItIsSentIsGivenUpAndNamed) {
  constexpr int64_t kLongerThanAnAttemptMs = 4500;
  const std::string id = unheld_id();
  const TcpPlace place = test::place_of(id);
  OwnedFd listener;
  ASSERT_TRUE(listen_on(place.port, &listener).ok());
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const OwnedFd first = test::connect_anybody(place.port);
  ASSERT_TRUE(first.valid());
  const auto results = run_tcp_attempts(id, {{1, 2, 7, kLongerThanAnAttemptMs}});
  EXPECT_EQ(results[0].status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[0].status, "nobody answered at " + place.text())) << results[0].status.text();
  EXPECT_TRUE(contains(results[0].status, "127.0.0.1:" + std::to_string(place.port) + ": no answer")) << results[0].status.text();
}

TEST(TcpMeeting, AHostThatNobodyKnowsIsTheDeadlinesError) {
  const auto results = run_tcp_attempts("no-such-host.invalid:4000/x", {{1, 2, 7, 50}});
  EXPECT_EQ(results[0].status.code(), ZERO_E_RENDEZVOUS);
  EXPECT_TRUE(contains(results[0].status, "nobody answered at no-such-host.invalid:4000 (the host's name is not known"))
      << results[0].status.text();
}

TEST(TcpMeeting, ADoubledRankIsAnErrorForAllWhoCame) {
  const auto results = run_tcp_attempts(fresh_id(), {{0, 3}, {1, 3, 7, 60'000, 0, 2}, {1, 3, 7, 60'000, 0, 3}});
  const std::string name = "rank 1 (process " + std::to_string(::getpid()) + " on ";
  for (const TcpResult &result : results) {
    EXPECT_EQ(result.status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(result.status, name) && contains(result.status, "is here already")) << result.status.text();
  }
}

TEST(TcpMeeting, DisagreeingSizesAreBothNamed) {
  for (const TcpResult &result : run_tcp_attempts(fresh_id(), {{0, 2}, {1, 3, 7, 60'000, 0, 2}})) {
    EXPECT_EQ(result.status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(result.status, "expects 3 ranks") && contains(result.status, "expects 2")) << result.status.text();
  }
}

TEST(TcpMeeting, RanksOfDisagreeingSettingsAreBothNamed) {
  for (const TcpResult &result : run_tcp_attempts(fresh_id(), {{0, 2, 0xaa}, {1, 2, 0xbb, 60'000, 0, 2}})) {
    EXPECT_EQ(result.status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_TRUE(contains(result.status, "ZERO_KEY_STAGING_BYTES")) << result.status.text();
    EXPECT_TRUE(contains(result.status, "rank 1 (process ") && contains(result.status, "rank 0 (process ")) << result.status.text();
  }
}

TEST(TcpMeeting, RanksOutsideTheSizeAreRefused) {
  for (const int64_t rank : {-1, 2}) {
    EXPECT_EQ(run_tcp_attempts("localhost:4000/x", {{rank, 2, 7, 100}})[0].status.code(), ZERO_E_INVALID_ARGUMENT);
  }
}

TEST(TcpMeeting, ARankThatWentMayComeAgain) {
  const auto results =
      run_tcp_attempts(fresh_id(), {{0, 3}, {1, 3, 7, 300, 0, 2}, {1, 3, 7, 60'000, 3'000, 2}, {2, 3, 7, 60'000, 3'500, 3}});
  EXPECT_EQ(results[1].status.code(), ZERO_E_RENDEZVOUS);
  for (const size_t index : {size_t{0}, size_t{2}, size_t{3}}) EXPECT_TRUE(results[index].status.ok()) << results[index].status.text();
}

TEST(TcpMeeting, ALeaderThatGoesIsWaitedForAgain) {
  const std::string id = unheld_id();
  // The first one gives up with a word to those who came; the second is met by who comes then.
  const auto first = run_tcp_attempts(id, {{0, 3, 7, 1'500}, {1, 3, 7, 60'000, 0, 2}});
  for (const TcpResult &result : first) EXPECT_TRUE(contains(result.status, "missing: rank 2")) << result.status.text();
  const std::vector<TcpAttempt> attempts{{0, 3, 7, 60'000, 100, 1}, {1, 3, 7, 60'000, 0, 2}, {2, 3, 7, 60'000, 0, 3}};
  auto second = run_tcp_attempts(id, attempts);
  check_met(&second, attempts);
}

/// Of every socket that listens, as a process has them that was forked.
std::vector<OwnedFd> copies_of_listeners() {
  std::vector<OwnedFd> copies;
  for (int fd = 0; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0) copies.emplace_back(::dup(fd));
  }
  return copies;
}

TEST(TcpMeeting, CopiesOfItsListenerKeepNoPort) {
  const std::string id = fresh_id();
  const std::vector<OwnedFd> copies = copies_of_listeners();
  ASSERT_FALSE(copies.empty());
  const auto missing = run_tcp_attempts(id, {{0, 2, 7, 100}});
  EXPECT_TRUE(contains(missing[0].status, "missing: rank 1")) << missing[0].status.text();
  for (int round = 0; round < 2; ++round) {
    const std::vector<TcpAttempt> attempts{{0, 2, 7, 60'000, 0, 1}, {1, 2, 7, 60'000, 0, 2}};
    auto met = run_tcp_attempts(id, attempts);
    check_met(&met, attempts);
  }
}

TEST(TcpMeeting, APortInUseIsAnErrorThatNamesIt) {
  const int64_t descriptors = open_descriptors();
  {
    OwnedFd holder;
    ASSERT_TRUE(listen_on(0, &holder).ok());
    const std::string port = std::to_string(local_address(holder.get()).port);
    const auto results = run_tcp_attempts("127.0.0.1:" + port + "/x", {{0, 2}});
    EXPECT_EQ(results[0].status.code(), ZERO_E_SYSTEM);
    EXPECT_TRUE(contains(results[0].status, "port " + port) && contains(results[0].status, "another port")) << results[0].status.text();
    std::string id;
    const Status made = make_tcp_id("127.0.0.1", std::stoll(port), &id);
    EXPECT_EQ(made.code(), ZERO_E_SYSTEM);
    EXPECT_TRUE(contains(made, "port " + port + " ")) << made.text();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(TcpId, WhatIsNoIdIsRefusedWithTheReason) {
  const std::string long_token(200, 't');
  const struct {
    std::string id;
    const char *reason;
  } bad[] = {
      {"", "no \"/\""},
      {"host:1", "no \"/\""},
      {"host:1/", "token"},
      {"host:1/a b", "token"},
      {"host:1/a/b", "token"},
      {"host/t", "no \":\""},
      {"/t", "no \":\""},
      {":1/t", "host"},
      {"ho st:1/t", "host"},
      {"::1:80/t", "host"},
      {"[::1:80/t", "host"},
      {"[]:80/t", "host"},
      {"[::g]:80/t", "host"},
      {"[1.2.3.4]:80/t", "host"},
      {"host:/t", "port"},
      {"host:0/t", "port"},
      {"host:-1/t", "port"},
      {"host:+1/t", "port"},
      {"host:1x/t", "port"},
      {"host:65536/t", "port"},
      {"host:999999999999999999999/t", "port"},
      {"[::1]/t", "port"},
      {std::string("host:1/t\0", 9), "zero byte"},
      {std::string(60, 'h') + ":1/" + long_token, "255 bytes"},
  };
  for (const auto &each : bad) {
    const Status status = check_tcp_id(each.id);
    EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT) << each.id;
    EXPECT_TRUE(contains(status, each.reason)) << status.text();
    EXPECT_EQ(run_tcp_attempts(each.id, {{0, 1}})[0].status.code(), ZERO_E_INVALID_ARGUMENT);
  }
}

TEST(TcpId, WhatIsAnIdIsAccepted) {
  for (const std::string &id : {std::string("h:1/t"), std::string("node-7.example.org:29500/run_1.A-b"), std::string("10.0.0.1:65535/0"),
                                std::string("[::]:1/t"), std::string("[2001:db8::7]:29500/run1"), "h:1/" + std::string(251, 't')}) {
    EXPECT_TRUE(check_tcp_id(id).ok()) << id;
  }
}

TEST(TcpId, AnIdThatIsMadeIsOneAndNamesThisHost) {
  std::string first, second;
  ASSERT_TRUE(make_tcp_id("", 0, &first).ok());
  ASSERT_TRUE(make_tcp_id("", 0, &second).ok());
  EXPECT_TRUE(check_tcp_id(first).ok()) << first;
  EXPECT_NE(test::place_of(first).token, test::place_of(second).token);
  EXPECT_EQ(test::place_of(first).host, address_of_this_host());
  for (const std::string &id : {first, second}) EXPECT_TRUE(take_listener(id).valid());
  EXPECT_FALSE(take_listener(first).valid());
  const uint16_t port = test::place_of(test::unheld_id()).port;
  ASSERT_TRUE(make_tcp_id("node7", port, &first).ok());
  EXPECT_EQ(first.substr(0, first.find('/')), "node7:" + std::to_string(port));
  take_listener(first);
}

TEST(TcpId, HostsAndPortsThatCanBeInNoIdAreRefused) {
  std::string id;
  for (const int64_t port : {int64_t{-1}, int64_t{65536}, INT64_MAX}) {
    EXPECT_EQ(make_tcp_id("h", port, &id).code(), ZERO_E_INVALID_ARGUMENT);
  }
  for (const std::string &host : {std::string("a b"), std::string("a/b"), std::string("a:1"), std::string(255, 'h')}) {
    EXPECT_EQ(make_tcp_id(host, 0, &id).code(), ZERO_E_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace zero::tcp_meeting_test
