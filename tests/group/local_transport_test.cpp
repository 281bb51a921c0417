/// @file The local transport with ranks as threads: rounds, quiet, shared memory, derived transports, poison, leaving.
#include "tests/core/failures.h"
#include "tests/group/local_ranks.h"
#include "tests/group/random_rounds.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>

namespace zero::local_transport_test {
namespace {

using test::barrier;
using test::call;
using test::connect;
using test::contains;
using test::fresh_name;
using test::quiet;
using test::random_round;
using test::run_task;
using test::run_thread_ranks;

class LocalTransportOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LocalTransportOfSize, testing::Range<int64_t>(1, 9));

TEST_P(LocalTransportOfSize, RandomPiecesArriveWhole) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  const int64_t rounds = test::full_tests() ? 1000 : 60;
  std::atomic<int64_t> wrong{0};
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size, {20'000, 64 * 1024});
    std::mt19937_64 random(static_cast<uint64_t>(rank));
    for (int64_t number = 0; number < rounds; ++number) {
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      const Status status = random_round(*transport, number, &wrong);
      ASSERT_TRUE(status.ok()) << status.text();
    }
    EXPECT_TRUE(quiet(*transport).ok());
    EXPECT_TRUE(barrier(*transport, 10'000).ok());
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(LocalTransportOfSize, OnePieceForAllIsStagedOnce) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size, {20'000, 8192});
    const int64_t nbytes = transport->capabilities().round_nbytes;
    // A whole round's bytes fit only when they are not staged once per peer.
    const std::vector<std::byte> piece(static_cast<size_t>(nbytes), static_cast<std::byte>(rank + 1));
    const std::vector<Offer> offers(static_cast<size_t>(size), {piece.data(), nbytes});
    const std::vector<Arrival> arrivals(static_cast<size_t>(size), {nullptr, nbytes});
    for (uint64_t number = 1; number < 6; ++number) {
      const Fingerprint fingerprint = call(OperationKind::all_gather, number, nbytes);
      const Status status = test::round(*transport, &fingerprint, offers, arrivals, [&](const std::vector<Arrival> &arrived) {
        for (int64_t peer = 0; peer < size; ++peer) {
          if (peer == rank) continue;
          const auto *bytes = static_cast<const std::byte *>(arrived[static_cast<size_t>(peer)].data);
          EXPECT_EQ(bytes[0], static_cast<std::byte>(peer + 1));
          EXPECT_EQ(bytes[nbytes - 1], static_cast<std::byte>(peer + 1));
        }
      });
      ASSERT_TRUE(status.ok()) << status.text();
    }
    EXPECT_TRUE(quiet(*transport).ok());
  });
}

TEST(LocalTransport, TellsWhereItRuns) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2, {20'000, 8192});
    EXPECT_EQ(transport->rank(), rank);
    EXPECT_EQ(transport->size(), 2);
    EXPECT_EQ(transport->capabilities().round_nbytes, 4096);
    EXPECT_GE(transport->staging_nbytes(), 8192);
    EXPECT_EQ(transport->capabilities().name, "local");
    EXPECT_EQ(transport->capabilities().place.local_rank, rank);
    EXPECT_EQ(transport->capabilities().place.local_size, 2);
    EXPECT_EQ(transport->capabilities().place.host_count, 1);
  });
}

TEST(LocalTransport, WorldOfOneUsesNoSocketsAndItsRoundsArriveAtOnce) {
  std::shared_ptr<Transport> transport;
  ASSERT_TRUE(run_task(connect_local("", 0, 1, {}, &transport)).ok());
  EXPECT_EQ(transport->staging_nbytes(), 0);
  EXPECT_TRUE(barrier(*transport, 1).ok());
  EXPECT_TRUE(quiet(*transport).ok());
  EXPECT_TRUE(transport->peers().health().ok());
  transport->peers().poison(Status::error(ZERO_E_ABORTED, "enough"));
  EXPECT_EQ(transport->peers().health().code(), ZERO_E_ABORTED);
  EXPECT_EQ(barrier(*transport, 2).code(), ZERO_E_ABORTED);
}

TEST(LocalTransport, DifferingCallsAreAnErrorOnEveryRankThatNamesBoth) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    ASSERT_TRUE(barrier(*transport, 1).ok());
    const Fingerprint fingerprint = call(OperationKind::all_gather, 2, rank == 2 ? 5 : 4);
    const Status status = test::round(*transport, &fingerprint, std::vector<Offer>(3), std::vector<Arrival>(3));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "count 4") && contains(status, "count 5") && contains(status, "rank 2")) << status.text();
    EXPECT_EQ(transport->peers().health().code(), ZERO_E_MISMATCH);
    EXPECT_EQ(barrier(*transport, 3).code(), ZERO_E_MISMATCH);
  });
}

TEST(LocalTransport, CallsWithDifferentNumbersOfRoundsAreAMismatch) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    ASSERT_TRUE(barrier(*transport, 1).ok());
    const Fingerprint next = call(OperationKind::barrier, 2);
    const Status status = test::round(*transport, rank == 0 ? &next : nullptr, std::vector<Offer>(2), std::vector<Arrival>(2));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "#2 barrier")) << status.text();
  });
}

TEST(LocalTransport, PiecesOfUnexpectedSizeAreAnError) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    const int64_t value = 0;
    const std::vector<Offer> offers(2, {&value, rank == 0 ? 8 : 4});
    const std::vector<Arrival> arrivals(2, {nullptr, 8});
    const Status status = test::round(*transport, &fingerprint, offers, arrivals);
    // Rank 1's pieces are as expected, so it may end before rank 0's finding reaches it.
    EXPECT_TRUE(status.code() == ZERO_E_TRANSPORT || (rank == 1 && status.ok())) << status.text();
    EXPECT_EQ(test::await(*transport, [&](bool *) { return transport->peers().health(); }).code(), ZERO_E_TRANSPORT);
  });
}

TEST(LocalTransport, OffersBeyondARoundsBytesAreRefused) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2, {20'000, 4096});
    const std::vector<std::byte> piece(1 << 16);
    const std::vector<Offer> offers(2, {piece.data(), 1 << 16});
    std::vector<Arrival> arrivals(2, {nullptr, 1 << 16});
    EXPECT_EQ(transport->rounds().start(nullptr, offers, arrivals).code(), ZERO_E_TRANSPORT);
  });
}

TEST(LocalTransport, ARankThatHasNotTakenARoundStartsNoOther) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    const std::vector<Offer> offers(2);
    std::vector<Arrival> arrivals(2);
    ASSERT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
    ASSERT_TRUE(test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); }).ok());
    const Status status = transport->rounds().start(nullptr, offers, arrivals);
    EXPECT_EQ(status.code(), ZERO_E_INTERNAL);
    EXPECT_TRUE(contains(status, "starts round 1 before it has taken")) << status.text();
    transport->rounds().consume();
    EXPECT_TRUE(barrier(*transport, 1).ok());
  });
}

TEST(LocalTransport, ProgressReportsNameAFewRanksAndCountTheRest) {
  constexpr int64_t kRanks = 9;
  const std::string name = fresh_name();
  std::barrier asked(kRanks);
  run_thread_ranks(kRanks, [&](int64_t rank) {
    const auto transport = connect(name, rank, kRanks);
    if (rank == 0) {
      const Status status = barrier(*transport, 1, 50);
      EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
      EXPECT_TRUE(contains(status, "rank 6 ") && contains(status, "and 2 more ranks")) << status.text();
    }
    asked.arrive_and_wait();
  });
}

TEST(LocalTransport, PoisonFromAnotherThreadEndsWaitingOnEveryRank) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    if (rank == 2) {
      // Never arrives; another thread of this rank aborts.
      std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        transport->peers().poison(Status::error(ZERO_E_ABORTED, "rank 2 was told to stop"));
        transport->peers().poison(Status::error(ZERO_E_TRANSPORT, "a later cause"));
      }).join();
    }
    const Status status = barrier(*transport, 1);
    EXPECT_EQ(status.code(), ZERO_E_ABORTED);
    EXPECT_STREQ(status.text(), "rank 2 was told to stop");
  });
}

TEST(LocalTransport, FirstCauseWinsOnEveryRankOnceAllHaveSeenIt) {
  const std::string name = fresh_name();
  run_thread_ranks(4, [&](int64_t rank) {
    const auto transport = connect(name, rank, 4);
    transport->peers().poison(Status::error(ZERO_E_PEER_FAILED, "cause of rank %d", static_cast<int>(rank)));
    const Status first = transport->peers().health();
    EXPECT_EQ(first.code(), ZERO_E_PEER_FAILED);
    for (int i = 0; i < 100; ++i) EXPECT_STREQ(transport->peers().health().text(), first.text());
  });
}

/// The bell is the first member of what a rank shares.
PoisonRecord &record_of(Transport &transport) { return reinterpret_cast<SegmentHeader *>(transport.peers().doorbell())->poison; }

/// As of a rank that ended when it had told one of the others. Without memory only the text is lost.
TEST(LocalTransport, WhoHearsOfAFailureTellsEveryRankBeforeItReturns) {
  for (const bool has_memory : {true, false}) {
    const std::string name = fresh_name();
    std::barrier step(3);
    run_thread_ranks(3, [&](int64_t rank) {
      const auto transport = connect(name, rank, 3);
      if (rank == 1) {
        record_of(*transport).write(Status::error(ZERO_E_TIMEOUT, "rank 0 waits no longer"));
        const test::FailingNew failing(has_memory ? INT64_MAX : 0);
        EXPECT_EQ(transport->peers().health().code(), ZERO_E_TIMEOUT);
      }
      step.arrive_and_wait();
      EXPECT_EQ(transport->peers().health().code(), ZERO_E_TIMEOUT);
      EXPECT_STREQ(transport->peers().health().text(), has_memory ? "rank 0 waits no longer" : "");
      step.arrive_and_wait();
    });
  }
}

TEST(LocalTransport, AFailureCountsAlsoWhenWhoFoundItHasNotSaidWhy) {
  const std::string name = fresh_name();
  std::barrier step(2);
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    if (rank == 1) {
      EXPECT_TRUE(record_of(*transport).begin());
    }
    step.arrive_and_wait();
    EXPECT_EQ(rank == 1 ? transport->peers().health().code() : ZERO_E_PEER_FAILED, ZERO_E_PEER_FAILED);
    step.arrive_and_wait();
    EXPECT_TRUE(contains(transport->peers().health(), "had not said why"));
    step.arrive_and_wait();
  });
}

TEST(LocalTransport, RankThatLeavesIsNamedToThoseWhoWait) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    auto transport = connect(name, rank, 3);
    ASSERT_TRUE(barrier(*transport, 1).ok());
    if (rank == 1) return;
    const Status status = barrier(*transport, 2);
    EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT);
    EXPECT_TRUE(contains(status, "rank 1 (process ") && contains(status, "#2 barrier")) << status.text();
  });
}

TEST(LocalTransport, LastRoundOfARankThatLeavesStillArrives) {
  const std::string name = fresh_name();
  for (int repeat = 0; repeat < 50; ++repeat) {
    run_thread_ranks(3, [&](int64_t rank) {
      const auto transport = connect(name, rank, 3);
      EXPECT_TRUE(barrier(*transport, 1).ok());
      EXPECT_TRUE(quiet(*transport).ok());
    });
  }
}

TEST(LocalTransport, ProgressReportsTellWhereMissingRanksAre) {
  std::barrier everybody_done(4);
  const std::string name = fresh_name();
  run_thread_ranks(4, [&](int64_t rank) {
    const auto transport = connect(name, rank, 4);
    std::shared_ptr<Transport> pair;
    const std::vector<int64_t> members = rank == 2 || rank == 3 ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{};
    ASSERT_TRUE(run_task(transport->derive(members, 1, 20'000, &pair)).ok());
    if (rank == 1 || rank == 2) {
      EXPECT_EQ(barrier(rank == 1 ? *transport : *pair, rank == 1 ? 1 : 7, 300).code(), ZERO_E_TIMEOUT);
    }
    if (rank == 0) {
      const Status status = barrier(*transport, 1, 100);
      EXPECT_FALSE(contains(status, "rank 1")) << status.text();
      EXPECT_TRUE(contains(status, "rank 2 (process ") && contains(status, "waits in group ") && contains(status, " at #7 barrier"))
          << status.text();
      EXPECT_TRUE(contains(status, "rank 3 (process ") && contains(status, "has called no collective of this group")) << status.text();
    }
    everybody_done.arrive_and_wait();
  });
}

TEST(LocalTransport, ProgressReportsTellTheLastCallOfARankOutsideTheGroup) {
  std::barrier everybody_done(2);
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    EXPECT_TRUE(barrier(*transport, 16).ok());
    if (rank == 0) {
      const Status status = barrier(*transport, 17, 50);
      EXPECT_TRUE(contains(status, "last did #16 barrier and is in no collective of this group")) << status.text();
    }
    everybody_done.arrive_and_wait();
  });
}

TEST(LocalTransport, CreationAfterCreationLeavesNoDescriptorsAndNoMappings) {
  const std::string name = fresh_name();
  const int64_t descriptors = test::open_descriptors();
  const int64_t mappings = test::shared_mappings();
  run_thread_ranks(4, [&](int64_t rank) {
    for (int cycle = 0; cycle < 200; ++cycle) connect(name, rank, 4);
  });
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_EQ(test::shared_mappings(), mappings);
}

TEST(LocalTransport, DifferingStagingSizesAreRefused) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    const Status status = test::try_connect(name, rank, 2, &transport, {20'000, 4096 << rank});
    EXPECT_EQ(status.code(), ZERO_E_RENDEZVOUS);
    EXPECT_EQ(transport, nullptr);
  });
}

TEST(LocalTransport, RanksOutsideTheSizeAreRefused) {
  std::shared_ptr<Transport> transport;
  EXPECT_EQ(test::try_connect("x", 1, 1, &transport).code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(test::try_connect("x", -1, 1, &transport).code(), ZERO_E_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace zero::local_transport_test
