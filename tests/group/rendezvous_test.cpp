/// @file Rendezvous with ranks as threads: everybody meets, or is told who is missing, doubled or different; strangers are ignored.
/// Knows sockets and ranks, not groups.
#include "tests/group/meetings.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

namespace zero::rendezvous_test {
namespace {

using test::connect_raw;
using test::connect_stranger;
using test::contains;
using test::fresh_name;
using test::joiner_with;
using test::open_descriptors;
using test::run_attempts;
using test::run_task;
using test::run_thread_ranks;
using test::terms_of;
using test::text_of;

class RendezvousOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RendezvousOfSize, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 33));

TEST_P(RendezvousOfSize, EveryRankLearnsWhatTheOthersBring) {
  const int64_t size = GetParam();
  const int64_t descriptors = open_descriptors();
  const std::string name = fresh_name();
  std::vector<std::string> seen(static_cast<size_t>(size));
  run_thread_ranks(size, [&](int64_t rank) {
    std::vector<Joiner> out;
    const Status status = run_task(rendezvous(terms_of(name, rank, size), joiner_with("blob of " + std::to_string(rank)), &out));
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
    const Status status = run_task(rendezvous(terms_of(name, rank, 3), joiner_with(blob), &out));
    ASSERT_TRUE(status.ok()) << status.text();
    for (const Joiner &joiner : out) EXPECT_EQ(text_of(joiner), blob);
  });
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(terms_of(name, 0, 2), joiner_with(blob + "b"), &out)).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(Rendezvous, RanksOutsideTheSizeAreRefused) {
  std::vector<Joiner> out;
  EXPECT_EQ(run_task(rendezvous(terms_of(fresh_name(), 2, 2), {}, &out)).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(run_task(rendezvous(terms_of(fresh_name(), -1, 2), {}, &out)).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(Rendezvous, NamesThatAreTooLongForAnAddressStillMeet) {
  const std::string prefix(200, 'n');
  for (const Status &status : run_attempts(prefix + fresh_name(), {{0, 2}, {1, 2}})) EXPECT_TRUE(status.ok()) << status.text();
  // Names that differ only past the limit do not meet.
  std::vector<Status> results(2);
  run_thread_ranks(2, [&](int64_t rank) {
    std::vector<Joiner> out;
    results[static_cast<size_t>(rank)] = run_task(rendezvous(terms_of(prefix + std::to_string(rank), rank, 2, 100), {}, &out));
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
  // To the root, the rank that gave up is missing.
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
    EXPECT_TRUE(contains(status, "ZERO_KEY_STAGING_BYTES")) << status.text();
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
  std::atomic<bool> all_came{false};  // only then the meeting may end
  run_thread_ranks(3, [&](int64_t who) {
    if (who == 0) results[0] = run_attempts(name, {{0, 2}})[0];
    while (who == 1 && !all_came) std::this_thread::yield();
    if (who == 1) results[1] = run_attempts(name, {{1, 2}})[0];
    if (who != 2) return;
    std::mt19937 random(1);
    std::vector<OwnedFd> sockets;
    EXPECT_LT(connect_raw(name, SOCK_STREAM), 0);
    sockets.emplace_back(connect_stranger(name));  // says nothing and stays
    for (int i = 0; i < 300; ++i) {
      OwnedFd stranger(connect_stranger(name));
      std::vector<uint8_t> bytes(1 + random() % 6000);
      for (uint8_t &byte : bytes) byte = static_cast<uint8_t>(random());
      PacketHeader hello;  // a hello that ends early, a blob longer than it says, a kind that only roots send
      if (i % 4 > 1) bytes.resize(std::max(bytes.size(), sizeof hello));
      if (i % 4 == 1) bytes.resize(sizeof hello - 1);
      if (i % 4 == 2) hello.blob_nbytes = 5;
      if (i % 4 == 3) hello.kind = PacketKind::entry;
      if (i % 4 != 0) std::memcpy(bytes.data(), &hello, std::min(bytes.size(), sizeof hello));
      ::send(stranger.get(), bytes.data(), i % 4 == 2 ? sizeof hello : bytes.size(), MSG_NOSIGNAL);
      if (i % 5 == 0) sockets.push_back(std::move(stranger));
    }
    all_came = true;
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(open_descriptors(), descriptors);
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
  const auto results = run_attempts(name, {{0, 3, 7, 5'000}, {1, 3, 7, 50, 20}, {1, 3, 7, 5'000, 700}, {2, 3, 7, 5'000, 800}});
  EXPECT_EQ(results[1].code(), ZERO_E_RENDEZVOUS);
  for (const size_t index : {size_t{0}, size_t{2}, size_t{3}}) EXPECT_TRUE(results[index].ok()) << results[index].text();
}

TEST(Rendezvous, ARootThatGivesUpWithoutAWordIsReplaced) {
  const std::string name = fresh_name();
  OwnedFd root;
  Role role = Role::again;
  ASSERT_TRUE(enter_meeting(name, &root, &role).ok());
  ASSERT_EQ(role, Role::root);
  std::vector<Status> results;
  run_thread_ranks(2, [&](int64_t who) {
    if (who == 0) results = run_attempts(name, {{0, 2}, {1, 2}});
    if (who == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      root.reset(-1);
    }
  });
  for (const Status &status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Rendezvous, AWatchEndsTheMeetingForAllWhoCame) {
  const std::string name = fresh_name();
  const Deadline until = Deadline::after_ms(50);
  std::vector<Status> results(2);
  run_thread_ranks(2, [&](int64_t rank) {
    MeetingTerms terms = terms_of(name, rank, 3);
    if (rank == 0) {
      terms.watch = [&until] { return until.passed() ? Status::error(ZERO_E_ABORTED, "told to stop") : Status(); };
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::vector<Joiner> out;
    results[static_cast<size_t>(rank)] = run_task(rendezvous(std::move(terms), {}, &out));
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
      const Status status = run_task(rendezvous(terms_of(name, rank, 4), joiner_with(blob), &out));
      ASSERT_TRUE(status.ok()) << "round " << round << ": " << status.text();
      for (const Joiner &joiner : out) failed += text_of(joiner) == blob ? 0 : 1;
    }
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace zero::rendezvous_test
