/// @file The transport over sockets with ranks as threads: rounds, messages, derived groups.
#include "tests/group/local_ranks.h"
#include "tests/group/random_rounds.h"
#include "tests/group/tcp_ranks.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>

namespace zero::tcp_transport_test {
namespace {

using test::barrier;
using test::call;
using test::contains;
using test::own_hosts;
using test::quiet;
using test::random_round;
using test::run_task;
using test::run_tcp_ranks;
using test::TcpWorld;

/// A round in which all pairs exchange so many bytes.
Status exchange(Transport &transport, const Fingerprint *fingerprint, int64_t nbytes) {
  const auto size = static_cast<size_t>(transport.size());
  const std::vector<std::byte> data(static_cast<size_t>(nbytes), static_cast<std::byte>(transport.rank() + 1));
  const auto look = [&](const std::vector<Arrival> &arrived) {
    for (size_t peer = 0; nbytes > 0 && peer < size; ++peer) {
      if (static_cast<int64_t>(peer) == transport.rank()) continue;
      const auto *bytes = static_cast<const std::byte *>(arrived[peer].data);
      EXPECT_EQ(bytes[0], static_cast<std::byte>(peer + 1));
      EXPECT_EQ(bytes[nbytes - 1], static_cast<std::byte>(peer + 1));
    }
  };
  return test::round(transport, fingerprint, std::vector<Offer>(size, {data.data(), nbytes}), std::vector<Arrival>(size, {nullptr, nbytes}),
                     look);
}

class TcpTransportOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, TcpTransportOfSize, testing::Values<int64_t>(1, 2, 3, 4, 8));

TEST_P(TcpTransportOfSize, RandomPiecesArriveWhole) {
  const int64_t rounds = test::full_tests() ? 1000 : 60;
  std::atomic<int64_t> wrong{0};
  run_tcp_ranks(own_hosts(GetParam()), [&](int64_t rank, auto transport, TcpWorld &) {
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

TEST_P(TcpTransportOfSize, NothingOneOddAndMostBytesArrive) {
  run_tcp_ranks(own_hosts(GetParam()), [](int64_t, auto transport, TcpWorld &) {
    uint64_t sequence = 0;
    for (const int64_t nbytes : {int64_t{0}, int64_t{1}, int64_t{4097}, TcpTransport::kRoundNbytes}) {
      const Fingerprint fingerprint = call(OperationKind::all_gather, ++sequence, nbytes);
      EXPECT_TRUE(exchange(*transport, &fingerprint, nbytes).ok());
      EXPECT_TRUE(exchange(*transport, nullptr, nbytes).ok());
    }
  });
}

TEST_P(TcpTransportOfSize, RoundsLargerThanTheSocketsBuffersArrive) {
  const auto body = [](int64_t, auto transport, TcpWorld &) {
    for (uint64_t number = 1; number < 20; ++number) {
      const Fingerprint fingerprint = call(OperationKind::all_gather, number, 1);
      const Status status = exchange(*transport, &fingerprint, TcpTransport::kRoundNbytes);
      ASSERT_TRUE(status.ok()) << status.text();
    }
    EXPECT_TRUE(quiet(*transport).ok());
  };
  run_tcp_ranks(own_hosts(GetParam()), body, 4096);
}

TEST(TcpTransport, TellsWhereItsRanksRun) {
  run_tcp_ranks({7, 3, 7, 5}, [](int64_t rank, auto transport, TcpWorld &) {
    EXPECT_EQ(transport->rank(), rank);
    EXPECT_EQ(transport->size(), 4);
    EXPECT_EQ(transport->capabilities().name, "tcp");
    EXPECT_EQ(transport->hosts(), (std::vector<int64_t>{0, 1, 0, 2}));
    EXPECT_EQ(transport->capabilities().place.local_rank, rank == 2 ? 1 : 0);
    EXPECT_EQ(transport->capabilities().place.local_size, rank % 2 == 0 ? 2 : 1);
    EXPECT_EQ(transport->capabilities().place.host_count, 3);
    EXPECT_EQ(transport->capabilities().host_block, 1);
    EXPECT_EQ(transport->capabilities().round_nbytes, 65536);
    EXPECT_EQ(transport->capabilities().longest_nbytes, 4096);
    EXPECT_EQ(transport->peers().doorbell(), nullptr);
    EXPECT_FALSE(transport->capabilities().single_thread);
    transport->leave_hosts_out();
    EXPECT_TRUE(barrier(*transport, 1).ok());
  });
}

TEST(TcpTransport, RanksOfOneHostAwaitNothingOfEachOtherAndHaveNoWay) {
  run_tcp_ranks({0, 0, 1}, [](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 1) {
      // Rank 0 never comes; what it would do is not this way's concern.
      std::vector<Offer> offers(3);
      std::vector<Arrival> arrivals(3);
      EXPECT_TRUE(transport->rounds().start(nullptr, offers, arrivals).ok());
      int value = 0;
      const Status sent = transport->messages().send_start(0, call(OperationKind::send, 1), {&value, 4});
      EXPECT_EQ(sent.code(), ZERO_E_TRANSPORT) << sent.text();
      EXPECT_EQ(transport->messages().recv_start(0, call(OperationKind::recv, 1), &value, 4).code(), ZERO_E_TRANSPORT);
      offers[0] = {&value, 4};
      EXPECT_EQ(transport->rounds().start(nullptr, offers, arrivals).code(), ZERO_E_TRANSPORT);
    }
  });
}

TEST(TcpTransport, OffersBeyondARoundsBytesAreRefused) {
  run_tcp_ranks(own_hosts(2), [](int64_t, auto transport, TcpWorld &) {
    const std::vector<std::byte> piece(1 << 17);
    const std::vector<Offer> offers(2, {piece.data(), 1 << 17});
    std::vector<Arrival> arrivals(2, {nullptr, 1 << 17});
    EXPECT_EQ(transport->rounds().start(nullptr, offers, arrivals).code(), ZERO_E_TRANSPORT);
  });
}

TEST(TcpTransport, ARoundHasArrivedOnlyWhenNobodyWaitsForBytesOfThisRank) {
  std::barrier step(2);
  const auto body = [&](int64_t rank, auto transport, TcpWorld &) {
    const std::vector<std::byte> data(60'000);
    const std::vector<Offer> offers(2, {data.data(), rank == 0 ? 60'000 : 1});
    std::vector<Arrival> arrivals(2, {nullptr, rank == 0 ? 1 : 60'000});
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    EXPECT_TRUE(transport->rounds().start(&fingerprint, offers, arrivals).ok());
    step.arrive_and_wait();
    // Rank 1's frame is there, but it does not read while rank 0 looks.
    for (int look = 0; rank == 0 && look < 20; ++look) {
      bool arrived = true;
      EXPECT_TRUE(transport->rounds().poll(&arrived).ok());
      EXPECT_FALSE(arrived);
    }
    step.arrive_and_wait();
    EXPECT_TRUE(test::await(*transport, [&](bool *ready) { return transport->rounds().poll(ready); }).ok());
    transport->rounds().consume();
    step.arrive_and_wait();
  };
  run_tcp_ranks(own_hosts(2), body, 4096);
}

TEST(TcpTransport, DifferingCallsAreAnErrorOnEveryRankThatNamesBoth) {
  run_tcp_ranks(own_hosts(3), [](int64_t rank, auto transport, TcpWorld &) {
    ASSERT_TRUE(barrier(*transport, 1).ok());
    const Fingerprint fingerprint = call(OperationKind::all_gather, 2, rank == 2 ? 5 : 4);
    const Status status = exchange(*transport, &fingerprint, 0);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "count 4") && contains(status, "count 5") && contains(status, "rank 2")) << status.text();
    EXPECT_EQ(transport->peers().health().code(), ZERO_E_MISMATCH);
    EXPECT_EQ(barrier(*transport, 3).code(), ZERO_E_MISMATCH);
  });
}

TEST(TcpTransport, CallsWithDifferentNumbersOfRoundsAreAMismatch) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    ASSERT_TRUE(barrier(*transport, 1).ok());
    const Fingerprint next = call(OperationKind::barrier, 2);
    const Status status = exchange(*transport, rank == 0 ? &next : nullptr, 0);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "#2 barrier")) << status.text();
  });
}

TEST(TcpTransport, PiecesOfUnexpectedSizeAreAnError) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    const Fingerprint fingerprint = call(OperationKind::exchange, 1);
    const int64_t value = 0;
    const std::vector<Offer> offers(2, {&value, rank == 0 ? 8 : 4});
    const Status status = test::round(*transport, &fingerprint, offers, std::vector<Arrival>(2, {nullptr, 8}));
    // Rank 1's pieces are as expected, so it may end before rank 0's finding reaches it.
    EXPECT_TRUE(status.code() == ZERO_E_TRANSPORT || (rank == 1 && status.ok())) << status.text();
    EXPECT_EQ(test::await(*transport, [&](bool *) { return transport->peers().health(); }).code(), ZERO_E_TRANSPORT);
  });
}

Fingerprint message(OperationKind kind, uint64_t sequence, int64_t count, int64_t peer) {
  Fingerprint fingerprint = call(kind, sequence, count);
  fingerprint.dtype = ZERO_DTYPE_U8;
  fingerprint.root = peer;
  return fingerprint;
}

std::vector<uint8_t> random_bytes(int64_t nbytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(nbytes));
  for (uint8_t &byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

/// Both directions with a peer at once.
Status swap(Transport &transport, int64_t peer, uint64_t sequence, int64_t nbytes) {
  const auto seed = [](int64_t rank) { return static_cast<uint64_t>(100 + rank); };
  const auto bytes = random_bytes(nbytes, seed(transport.rank()));
  std::vector<uint8_t> received(bytes.size());
  ZERO_TRY(transport.messages().send_start(peer, message(OperationKind::send, sequence, nbytes, peer), {bytes.data(), nbytes}));
  ZERO_TRY(transport.messages().recv_start(peer, message(OperationKind::recv, sequence, nbytes, peer), received.data(), nbytes));
  bool sent = false;
  bool came = false;
  const auto poll = [&](bool *ready) -> Status {
    if (!sent) ZERO_TRY(transport.messages().send_poll(peer, &sent));
    if (!came) ZERO_TRY(transport.messages().recv_poll(peer, &came));
    *ready = sent && came;
    return {};
  };
  ZERO_TRY(test::await(transport, poll));
  EXPECT_EQ(received, random_bytes(nbytes, seed(peer)));
  return {};
}

TEST(TcpMessage, BytesOfEverySizeGoBothWaysAtOnce) {
  for (const int buffer_nbytes : {0, 4096}) {
    const auto body = [](int64_t rank, auto transport, TcpWorld &) {
      uint64_t sequence = 0;
      for (const int64_t nbytes : {0, 1, 63, 0, 65'535, 65'536, 65'537, 1 << 20, 1'000'003}) {
        const Status status = swap(*transport, 1 - rank, ++sequence, nbytes);
        ASSERT_TRUE(status.ok()) << status.text();
      }
    };
    run_tcp_ranks(own_hosts(2), body, buffer_nbytes);
  }
}

TEST(TcpMessage, AllPairsExchangeAtTheSameTimeAsRounds) {
  constexpr int64_t kRanks = 4;
  std::atomic<int64_t> wrong{0};
  run_tcp_ranks(own_hosts(kRanks), [&](int64_t rank, auto transport, TcpWorld &) {
    std::vector<std::jthread> threads;
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      threads.emplace_back([&, peer] {
        for (uint64_t sequence = 1; sequence < 5; ++sequence) {
          const Status status = swap(*transport, peer, sequence, 200'000);
          ASSERT_TRUE(status.ok()) << status.text();
        }
      });
    }
    for (int64_t number = 0; number < 20; ++number) {
      const Status status = random_round(*transport, number, &wrong);
      ASSERT_TRUE(status.ok()) << status.text();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(TcpMessage, DifferentCountsAreAnErrorOnBothSidesAndNoMemoryChanges) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    std::vector<uint8_t> bytes(200, 7);
    const OperationKind kind = rank == 0 ? OperationKind::send : OperationKind::recv;
    const int64_t count = rank == 0 ? 100 : 200;
    const Fingerprint fingerprint = message(kind, 1, count, 1 - rank);
    const Status status = rank == 0 ? test::send(*transport, 1, fingerprint, bytes.data(), count)
                                    : test::recv(*transport, 0, fingerprint, bytes.data(), count);
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "count 100") && contains(status, "count 200")) << status.text();
    EXPECT_EQ(bytes, std::vector<uint8_t>(200, 7));
  });
}

TEST(TcpMessage, AMessageStartedBeforeTheLastOneEndedIsRefused) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 1) return;
    std::byte data{};
    EXPECT_TRUE(transport->messages().recv_start(1, call(OperationKind::recv, 1, 1), &data, 1).ok());
    EXPECT_EQ(transport->messages().recv_start(1, call(OperationKind::recv, 2, 1), &data, 1).code(), ZERO_E_INTERNAL);
    EXPECT_TRUE(transport->messages().send_start(1, call(OperationKind::send, 1, 1), {&data, 1}).ok());
    EXPECT_EQ(transport->messages().send_start(1, call(OperationKind::send, 2, 1), {&data, 1}).code(), ZERO_E_INTERNAL);
  });
}

TEST(TcpMessage, ASenderOrReceiverThatLeavesIsNamedToTheOther) {
  for (const bool leaver_sends : {true, false}) {
    run_tcp_ranks(own_hosts(2), [&](int64_t rank, auto transport, TcpWorld &) {
      ASSERT_TRUE(swap(*transport, 1 - rank, 1, 10).ok());
      if (rank == 1) return;
      std::byte data{};
      const Status status = leaver_sends ? test::recv(*transport, 1, message(OperationKind::recv, 2, 1, 1), &data, 1)
                                         : test::send(*transport, 1, message(OperationKind::send, 2, 1, 1), &data, 1);
      EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << status.text();
      EXPECT_TRUE(contains(status, "rank 1 (process 1001 on node1) released") && contains(status, leaver_sends ? "#2 recv" : "#2 send"))
          << status.text();
    });
  }
}

std::vector<int64_t> all_ranks(int64_t size) { return own_hosts(size); }

std::shared_ptr<Transport> derive(Transport &transport, std::vector<int64_t> members, int64_t tag = 0) {
  std::shared_ptr<Transport> out;
  const Status status = run_task(transport.derive(std::move(members), tag, test::kWaitMs, &out));
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

TEST(TcpDerived, GroupsHaveTheirMembersInTheirOrderAndOutliveTheirParent) {
  run_tcp_ranks(own_hosts(4), [](int64_t rank, auto transport, TcpWorld &) {
    const bool odd = rank % 2 != 0;
    std::shared_ptr<Transport> pair = derive(*transport, odd ? std::vector<int64_t>{3, 1} : std::vector<int64_t>{0, 2}, odd ? 1 : 0);
    EXPECT_EQ(pair->rank(), odd ? (3 - rank) / 2 : rank / 2);
    const std::shared_ptr<Transport> none = derive(*transport, rank == 3 ? std::vector<int64_t>() : std::vector<int64_t>{2, 1, 0});
    EXPECT_EQ(none == nullptr, rank == 3);
    transport.reset();
    const std::shared_ptr<Transport> alone = derive(*pair, {pair->rank()});
    EXPECT_TRUE(barrier(*pair, 1).ok());
    EXPECT_TRUE(barrier(*alone, 1).ok());
    std::atomic<int64_t> wrong{0};
    for (int64_t number = 0; number < 10; ++number) {
      const Status status = none != nullptr ? random_round(*none, number, &wrong) : Status();
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(random_round(*pair, number, &wrong).ok());
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(TcpDerived, TwoGroupsRunAtOnceOnTwoThreads) {
  std::atomic<int64_t> wrong{0};
  run_tcp_ranks(own_hosts(3), [&](int64_t, auto transport, TcpWorld &) {
    const auto run = [&](std::shared_ptr<Transport> group) {
      for (int64_t number = 0; number < 60; ++number) {
        const Status status = random_round(*group, number, &wrong);
        ASSERT_TRUE(status.ok()) << status.text();
      }
    };
    const std::shared_ptr<Transport> first = derive(*transport, all_ranks(3));
    const std::shared_ptr<Transport> second = derive(*transport, all_ranks(3));
    std::thread other(run, second);
    run(first);
    other.join();
  });
  EXPECT_EQ(wrong, 0);
}

TEST(TcpDerived, WhatComesBeforeAGroupIsMadeIsKeptForIt) {
  std::barrier step(2);
  run_tcp_ranks(own_hosts(2), [&](int64_t rank, auto transport, TcpWorld &) {
    if (rank == 0) {
      for (int index = 0; index < 50; ++index) derive(*transport, all_ranks(2));
      const std::shared_ptr<Transport> group = derive(*transport, all_ranks(2));
      std::vector<Arrival> arrivals(2, {nullptr, 9'000});
      const std::vector<std::byte> data(9'000, std::byte{1});
      const Fingerprint fingerprint = call(OperationKind::all_gather, 1, 1);
      const std::vector<Offer> offers(2, {data.data(), 9'000});
      EXPECT_TRUE(group->rounds().start(&fingerprint, offers, arrivals).ok());
      step.arrive_and_wait();
      EXPECT_TRUE(test::await(*group, [&](bool *ready) { return group->rounds().poll(ready); }).ok());
      group->rounds().consume();
      EXPECT_TRUE(barrier(*group, 2).ok());
    } else {
      step.arrive_and_wait();
      for (int index = 0; index < 20; ++index) EXPECT_TRUE(transport->peers().health().ok());
      for (int index = 0; index < 50; ++index) {
        // The other has left each of these, in good order.
        const std::shared_ptr<Transport> left = derive(*transport, all_ranks(2));
        EXPECT_TRUE(left->peers().health().ok());
        EXPECT_EQ(left->peers().watch().code(), ZERO_E_PEER_LEFT);
      }
      const std::shared_ptr<Transport> group = derive(*transport, all_ranks(2));
      const Fingerprint fingerprint = call(OperationKind::all_gather, 1, 1);
      EXPECT_TRUE(exchange(*group, &fingerprint, 9'000).ok());
      EXPECT_TRUE(barrier(*group, 2).ok());
    }
  });
}

TEST(TcpDerived, FailureOfOneGroupLeavesTheOthers) {
  std::barrier checked(2);
  run_tcp_ranks(own_hosts(2), [&](int64_t rank, auto transport, TcpWorld &) {
    const std::shared_ptr<Transport> group = derive(*transport, all_ranks(2));
    if (rank == 0) group->peers().poison(Status::error(ZERO_E_ABORTED, "enough"));
    EXPECT_EQ(barrier(*group, 1).code(), ZERO_E_ABORTED);
    EXPECT_TRUE(barrier(*transport, 1).ok());
    checked.arrive_and_wait();
  });
}

TEST(TcpTransport, MemoryIsSharedWithNobody) {
  run_tcp_ranks(own_hosts(2), [](int64_t rank, auto transport, TcpWorld &) {
    std::vector<PeerMemory> out;
    std::shared_ptr<Mapping> mapping;
    ASSERT_TRUE(Mapping::create_shared(4096, &mapping).ok());
    ASSERT_TRUE(run_task(transport->share(mapping, &out, 1000)).ok());
    EXPECT_EQ(out[static_cast<size_t>(rank)].mapping, mapping);
    EXPECT_EQ(out[static_cast<size_t>(1 - rank)].mapping, nullptr);
    transport->unshare(*mapping);
  });
}

}  // namespace
}  // namespace zero::tcp_transport_test
