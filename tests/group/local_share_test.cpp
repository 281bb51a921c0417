/// @file The local transport's shared mappings and derived transports, ranks as threads.
#include "tests/core/failures.h"
#include "tests/group/local_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

namespace zero::local_share_test {
namespace {

using test::barrier;
using test::call;
using test::connect;
using test::contains;
using test::fresh_name;
using test::quiet;
using test::run_task;
using test::run_thread_ranks;

constexpr int64_t kArenaBytes = 1 << 20;

/// In turn memory files and memory of this process, because ranks that are threads share either.
std::shared_ptr<Mapping> make_arena(int64_t rank) {
  std::shared_ptr<Mapping> arena;
  EXPECT_TRUE((rank % 2 == 0 ? Mapping::create_shared : Mapping::create_for_threads)(kArenaBytes, &arena).ok());
  std::memset(arena->data(), static_cast<int>(rank + 1), kArenaBytes);
  return arena;
}

/// A round in which every rank offers `nbytes` from `data` to all; `look` sees each peer's arrival.
Status offer_all(Transport &transport, uint64_t sequence, const void *data, int64_t nbytes,
                 const std::function<void(int64_t, const std::byte *)> &look) {
  const auto size = static_cast<size_t>(transport.size());
  const Fingerprint fingerprint = call(OperationKind::all_gather, sequence, nbytes);
  return test::round(transport, &fingerprint, std::vector<Offer>(size, {data, nbytes}), std::vector<Arrival>(size, {nullptr, nbytes}),
                     [&](const std::vector<Arrival> &arrived) {
                       for (int64_t peer = 0; peer < transport.size(); ++peer) {
                         if (peer != transport.rank()) look(peer, static_cast<const std::byte *>(arrived[static_cast<size_t>(peer)].data));
                       }
                     });
}

class LocalShareOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LocalShareOfSize, testing::Range<int64_t>(1, 9));

TEST_P(LocalShareOfSize, SharedMemoryIsReadInPlaceHoweverLarge) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size, {20'000, 4096});
    EXPECT_TRUE(transport->capabilities().within_process);
    const auto arena = make_arena(rank);
    std::vector<PeerMemory> peers;
    const Status status = run_task(transport->share(arena, &peers, 20'000));
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(peers.size(), static_cast<size_t>(size));
    for (int64_t peer = 0; peer < size; ++peer) {
      const auto &mapping = peers[static_cast<size_t>(peer)].mapping;
      ASSERT_NE(mapping, nullptr);
      EXPECT_EQ(mapping->data()[kArenaBytes - 1], static_cast<std::byte>(peer + 1));
    }
    // A piece far beyond a round's bytes, not at the arena's start.
    for (uint64_t number = 1; number < 4; ++number) {
      const Status offered = offer_all(*transport, number, arena->data() + 64, kArenaBytes - 64, [&](int64_t peer, const std::byte *data) {
        EXPECT_EQ(data, peers[static_cast<size_t>(peer)].mapping->data() + 64);
      });
      ASSERT_TRUE(offered.ok()) << offered.text();
    }
    EXPECT_TRUE(quiet(*transport).ok());
    transport->unshare(*arena);
    EXPECT_TRUE(barrier(*transport, 4).ok());
    EXPECT_TRUE(quiet(*transport).ok());
  });
}

/// The last rank offers from an arena or from memory of its own; all others from arenas.
TEST_P(LocalShareOfSize, RestsCanBeReadWhereTheyLieInSharedMemory) {
  constexpr int64_t kFirst = 1000;
  const int64_t size = GetParam();
  for (const bool last_shares : {true, false}) {
    const std::string name = fresh_name();
    run_thread_ranks(size, [&](int64_t rank) {
      const auto transport = connect(name, rank, size, {20'000, 16'384});
      const auto arena = make_arena(rank);
      std::vector<PeerMemory> peers;
      ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
      const std::vector<std::byte> own(kArenaBytes, static_cast<std::byte>(rank + 1));
      const bool in_arena = last_shares || rank + 1 < size;
      const std::byte *data = in_arena ? arena->data() : own.data();
      const Fingerprint fingerprint = call(OperationKind::all_gather, 1);
      const std::vector<Offer> offers(static_cast<size_t>(size), {data, kFirst, kArenaBytes - kFirst});
      const std::vector<Arrival> arrivals(static_cast<size_t>(size), {nullptr, kFirst, kArenaBytes - kFirst});
      const Status status = test::round(*transport, &fingerprint, offers, arrivals, [&](const std::vector<Arrival> &arrived) {
        for (int64_t peer = 0; peer < size; ++peer) {
          const Arrival &arrival = arrived[static_cast<size_t>(peer)];
          EXPECT_EQ(arrival.rest_is_there, size == 1 || last_shares || peer + 1 < size) << "rank " << rank << " of rank " << peer;
          if (peer == rank) continue;
          const int64_t last = arrival.rest_is_there ? kArenaBytes - 1 : kFirst - 1;
          EXPECT_EQ(static_cast<const std::byte *>(arrival.data)[last], static_cast<std::byte>(peer + 1));
        }
      });
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(quiet(*transport).ok());
    });
  }
}

TEST(LocalShare, PiecesThatReachBeyondTheArenaAreStaged) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    const auto arena = make_arena(rank);
    std::vector<PeerMemory> peers;
    ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
    const std::vector<std::byte> outside(4096, static_cast<std::byte>(rank + 51));
    const Status status = offer_all(*transport, 1, outside.data(), 4096,
                                    [&](int64_t peer, const std::byte *data) { EXPECT_EQ(data[4095], static_cast<std::byte>(peer + 51)); });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(quiet(*transport).ok());
  });
}

/// A round out of each rank's arena, or out of memory of its own, that rank 1 takes late; `look` sees rank 0's transport before it does.
void take_late(bool shares, int64_t nbytes, const std::function<void(Transport &, const Fingerprint &)> &look) {
  const std::string name = fresh_name();
  std::barrier step(2);
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    const auto arena = make_arena(rank);
    std::vector<PeerMemory> peers;
    if (shares) {
      ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
    }
    const Fingerprint fingerprint = call(OperationKind::all_gather, 1, nbytes);
    const std::vector<Offer> offers(2, {arena->data(), nbytes});
    std::vector<Arrival> arrivals(2, {nullptr, nbytes});
    ASSERT_TRUE(transport->rounds().start(&fingerprint, offers, arrivals).ok());
    ASSERT_TRUE(test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); }).ok());
    if (rank == 0) look(*transport, fingerprint);
    step.arrive_and_wait();
    const std::byte *arrived = static_cast<const std::byte *>(arrivals[static_cast<size_t>(1 - rank)].data);
    EXPECT_EQ(arrived[nbytes - 1], static_cast<std::byte>(2 - rank));
    transport->rounds().consume();
    step.arrive_and_wait();
    EXPECT_TRUE(quiet(*transport).ok());
    EXPECT_EQ(transport->peers().progress_report(fingerprint), "every rank has arrived");
    step.arrive_and_wait();
  });
}

TEST(LocalShare, WhoStillReadsInPlaceIsWaitedForAndNamed) {
  take_late(true, 4096, [](Transport &transport, const Fingerprint &fingerprint) {
    EXPECT_EQ(quiet(transport, 20).code(), ZERO_E_TIMEOUT);
    EXPECT_NE(transport.peers().progress_report(fingerprint).find("rank 1"), std::string::npos);
  });
}

TEST(LocalShare, NobodyIsWaitedForWhoReadsWhatWasStaged) {
  const auto look = [](Transport &transport, const Fingerprint &fingerprint) {
    EXPECT_TRUE(quiet(transport, 0).ok());
    EXPECT_EQ(transport.peers().progress_report(fingerprint), "every rank has arrived");
  };
  take_late(false, 4096, look);
  take_late(true, 1024, look);
}

TEST(LocalShare, RanksMayShareNothing) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    std::vector<PeerMemory> peers;
    const Status status = run_task(transport->share(rank == 1 ? nullptr : make_arena(rank), &peers, 20'000));
    ASSERT_TRUE(status.ok()) << status.text();
    for (const int64_t peer : {0, 1, 2}) EXPECT_EQ(peers[static_cast<size_t>(peer)].mapping == nullptr, peer == 1);
  });
}

TEST(LocalShare, UnsharedMemoryIsLetGoByPeersAtTheNextRound) {
  const std::string name = fresh_name();
  const int64_t before = test::shared_mappings();
  std::atomic<int64_t> held{0};
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    uint64_t sequence = 0;
    for (int cycle = 0; cycle < 20; ++cycle) {
      auto first = make_arena(rank);
      auto second = make_arena(rank);
      std::vector<PeerMemory> peers;
      ASSERT_TRUE(run_task(transport->share(first, &peers, 20'000)).ok());
      ASSERT_TRUE(run_task(transport->share(second, &peers, 20'000)).ok());
      peers.clear();
      const Status status = offer_all(*transport, ++sequence, first->data(), kArenaBytes,
                                      [](int64_t peer, const std::byte *data) { EXPECT_EQ(data[7], static_cast<std::byte>(peer + 1)); });
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_TRUE(quiet(*transport).ok());
      transport->unshare(*first);
      transport->unshare(*second);
      // What is no longer shared is staged, so a large piece no longer fits.
      first.reset();
      second.reset();
      for (int round = 0; round < 2; ++round) ASSERT_TRUE(barrier(*transport, ++sequence).ok());
      ASSERT_TRUE(quiet(*transport).ok());
    }
    ASSERT_TRUE(barrier(*transport, ++sequence).ok());
    if (rank == 0) held = test::shared_mappings();
    ASSERT_TRUE(barrier(*transport, ++sequence).ok());
    ASSERT_TRUE(quiet(*transport).ok());
  });
  EXPECT_EQ(held, before + 3);
  EXPECT_EQ(test::shared_mappings(), before);
}

TEST(LocalShare, MemoryStaysReadableForPeersAfterTheyDroppedTheirs) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    auto arena = make_arena(rank);
    std::vector<PeerMemory> peers;
    ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
    peers.clear();
    const std::vector<std::byte> own(kArenaBytes / 4, static_cast<std::byte>(9));
    if (rank == 1) transport->unshare(*arena);
    if (rank == 1) arena.reset();
    // Rank 0 still offers from its arena, rank 1 from memory of its own.
    const void *data = rank == 0 ? arena->data() : own.data();
    const Status status = offer_all(*transport, 1, data, kArenaBytes / 4, [](int64_t peer, const std::byte *bytes) {
      EXPECT_EQ(bytes[5], static_cast<std::byte>(peer == 0 ? 1 : 9));
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(quiet(*transport).ok());
  });
}

TEST(LocalShare, RankThatLeavesWhileOthersShareIsNamed) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    auto transport = connect(name, rank, 3);
    if (rank == 1) return;
    std::vector<PeerMemory> peers;
    const Status status = run_task(transport->share(make_arena(rank), &peers, 20'000));
    EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT);
    EXPECT_TRUE(contains(status, "rank 1 (process ")) << status.text();
  });
}

TEST(LocalShare, RankThatNeverSharesIsMissingAtTheDeadline) {
  std::barrier everybody_done(3);
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    if (rank != 1) {
      std::vector<PeerMemory> peers;
      const Status status = run_task(transport->share(make_arena(rank), &peers, 100));
      EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
    }
    everybody_done.arrive_and_wait();
  });
}

TEST(LocalShare, MissingRanksAreNamedAsInTheGroupThatTheyMeetIn) {
  const std::string name = fresh_name();
  std::vector<std::shared_ptr<Transport>> transports(3);
  run_thread_ranks(3, [&](int64_t rank) { transports[static_cast<size_t>(rank)] = connect(name, rank, 3); });
  std::shared_ptr<Transport> pair;
  const Status derived = run_task(transports[2]->derive({1, 2}, 0, 50, &pair));
  EXPECT_EQ(derived.code(), ZERO_E_TIMEOUT);
  EXPECT_EQ(std::string(derived.text()), "1 of 2 ranks met to share memory or make a group within 50 ms; missing: rank 1");
  transports[0]->peers().name_ranks({4, 5, 6});
  std::vector<PeerMemory> peers;
  const Status shared = run_task(transports[0]->share(make_arena(0), &peers, 50));
  EXPECT_EQ(std::string(shared.text()), "1 of 3 ranks met to share memory or make a group within 50 ms; missing: rank 5, rank 6");
}

/// Rank 0 has brought something, fails and lets go of it before rank 1 looks at it.
Status outcome_after_peer_gave_up(const std::function<Task(int64_t, Transport &)> &meet, const std::function<void()> &let_go) {
  const std::string name = fresh_name();
  std::vector<std::shared_ptr<Transport>> transports(2);
  run_thread_ranks(2, [&](int64_t rank) { transports[static_cast<size_t>(rank)] = connect(name, rank, 2); });
  auto leader = std::make_unique<Operation>(meet(0, *transports[0]));
  EXPECT_FALSE(leader->advance());
  Operation client(meet(1, *transports[1]));
  transports[0]->peers().poison(Status::error(ZERO_E_ABORTED, "the test gave up"));
  leader.reset();
  let_go();
  while (!client.advance()) std::this_thread::yield();
  return client.status();
}

TEST(LocalShare, APeerThatGivesUpBecauseTheGroupFailedIsNotTheCause) {
  std::vector<PeerMemory> peers[2];
  const Status shared = outcome_after_peer_gave_up(
      [&](int64_t rank, Transport &transport) { return transport.share(make_arena(rank), &peers[rank], 20'000); },
      [&] { peers[0].clear(); });
  EXPECT_EQ(shared.code(), ZERO_E_ABORTED) << shared.text();
  std::shared_ptr<Transport> children[2];
  const Status derived = outcome_after_peer_gave_up(
      [&](int64_t rank, Transport &transport) {
        return transport.derive({0, 1}, 0, 20'000, &children[rank]);
      },
      [] {});
  EXPECT_EQ(derived.code(), ZERO_E_ABORTED) << derived.text();
}

TEST_P(LocalShareOfSize, DerivedTransportsWorkSideBySide) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size);
    // Even and odd ranks, each in reversed order; then pairs of neighbours out of the even group.
    std::vector<int64_t> members;
    for (int64_t peer = size - 1; peer >= 0; --peer) {
      if (peer % 2 == rank % 2) members.push_back(peer);
    }
    std::shared_ptr<Transport> half;
    const Status status = run_task(transport->derive(members, rank % 2, 20'000, &half));
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(half->size(), static_cast<int64_t>(members.size()));
    EXPECT_EQ(members[static_cast<size_t>(half->rank())], rank);
    std::shared_ptr<Transport> alone;
    ASSERT_TRUE(run_task(half->derive({half->rank()}, half->rank(), 20'000, &alone)).ok());
    EXPECT_EQ(alone->size(), 1);
    for (uint64_t number = 1; number < 30; ++number) {
      const int64_t value = rank;
      const Status offered = offer_all(*half, number, &value, sizeof value, [&](int64_t peer, const std::byte *data) {
        EXPECT_EQ(std::memcmp(data, &members[static_cast<size_t>(peer)], sizeof value), 0);
      });
      ASSERT_TRUE(offered.ok()) << offered.text();
      ASSERT_TRUE(barrier(*transport, number).ok());
      ASSERT_TRUE(barrier(*alone, number).ok());
    }
    EXPECT_TRUE(quiet(*half).ok());
    EXPECT_TRUE(quiet(*transport).ok());
  });
}

/// Rank 0 fails while rank 1 reads its arena, or when rank 1 has read it.
TEST(LocalShare, WhatWasReadWhileItsOwnerFailedIsAnError) {
  for (const bool while_read : {true, false}) {
    const std::string name = fresh_name();
    std::atomic<bool> read{false};
    std::atomic<bool> failed{false};
    run_thread_ranks(2, [&](int64_t rank) {
      const auto transport = connect(name, rank, 2);
      const auto arena = make_arena(rank);
      std::vector<PeerMemory> peers;
      ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
      const auto fail_after = [&](const std::atomic<bool> &happened) {
        while (!happened) std::this_thread::yield();
        transport->peers().poison(Status::error(ZERO_E_TIMEOUT, "rank 0 waits no longer"));
        failed = true;
      };
      const Status status = offer_all(*transport, 1, arena->data(), kArenaBytes, [&](int64_t, const std::byte *) {
        if (rank == 0) return;
        read = while_read;
        while (while_read && !failed) std::this_thread::yield();
      });
      EXPECT_TRUE(status.ok()) << status.text();
      if (rank == 1) read = true;
      if (rank == 0) fail_after(read);
      while (!failed) std::this_thread::yield();
      if (rank == 0) return;
      EXPECT_EQ(quiet(*transport).code(), while_read ? ZERO_E_TIMEOUT : ZERO_OK);
    });
  }
}

TEST(LocalShare, WhatWasReadInPlaceIsGivenBackWithoutMemoryAlsoAfterAFailure) {
  const std::string name = fresh_name();
  std::barrier step(2);
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    const auto arena = make_arena(rank);
    std::vector<PeerMemory> peers;
    ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
    const Fingerprint fingerprint = call(OperationKind::all_gather, 1, kArenaBytes);
    const std::vector<Offer> offers(2, {arena->data(), kArenaBytes});
    std::vector<Arrival> arrivals(2, {nullptr, kArenaBytes});
    ASSERT_TRUE(transport->rounds().start(&fingerprint, offers, arrivals).ok());
    ASSERT_TRUE(test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); }).ok());
    step.arrive_and_wait();
    if (rank == 0) transport->peers().poison(Status::error(ZERO_E_TIMEOUT, "rank 0 waits no longer"));
    step.arrive_and_wait();
    {
      const test::FailingNew failing(0);
      EXPECT_NO_THROW(transport->rounds().consume());
    }
    EXPECT_EQ(quiet(*transport).code(), ZERO_E_TIMEOUT);
    step.arrive_and_wait();
  });
}

TEST(LocalDerive, RanksInNoGroupGetNoneAndLaterGroupsStillMeet) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    std::shared_ptr<Transport> pair;
    const auto members = rank == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{0, 2};
    ASSERT_TRUE(run_task(transport->derive(members, 0, 20'000, &pair)).ok());
    EXPECT_EQ(pair == nullptr, rank == 1);
    std::shared_ptr<Transport> all;
    ASSERT_TRUE(run_task(transport->derive({2, 1, 0}, 0, 20'000, &all)).ok());
    EXPECT_EQ(all->rank(), 2 - rank);
    EXPECT_TRUE(barrier(*all, 1).ok());
    std::shared_ptr<Transport> wrong;
    EXPECT_EQ(run_task(transport->derive({rank == 0 ? 1 : 0}, 0, 20'000, &wrong)).code(), ZERO_E_INTERNAL);
    EXPECT_TRUE(barrier(*all, 2).ok());
  });
}

TEST(LocalDerive, DerivedTransportsOutliveTheirParentAndPoisonStaysWithThem) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    auto transport = connect(name, rank, 2);
    std::shared_ptr<Transport> child;
    ASSERT_TRUE(run_task(transport->derive({0, 1}, 0, 20'000, &child)).ok());
    if (rank == 1) child->peers().poison(Status::error(ZERO_E_ABORTED, "only this one"));
    EXPECT_EQ(barrier(*child, 1).code(), ZERO_E_ABORTED);
    EXPECT_TRUE(barrier(*transport, 1).ok());
    std::shared_ptr<Transport> other;
    ASSERT_TRUE(run_task(transport->derive({0, 1}, 0, 20'000, &other)).ok());
    transport.reset();
    for (uint64_t number = 1; number < 50; ++number) EXPECT_TRUE(barrier(*other, number).ok());
  });
}

}  // namespace
}  // namespace zero::local_share_test
