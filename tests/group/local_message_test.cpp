/// @file Point-to-point messages of the local transport, ranks as threads.
#include "tests/group/local_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace zero::local_message_test {
namespace {

using test::barrier;
using test::connect;
using test::contains;
using test::fresh_name;
using test::run_task;
using test::run_thread_ranks;

Fingerprint message(OperationKind kind, uint64_t sequence, int64_t count, int64_t peer) {
  Fingerprint fingerprint = test::call(kind, sequence, count);
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

const std::vector<int64_t> kSizes = {0, 1, 63, 4096, 65'535, 65'536, 65'537, 131'072, 131'073, 1'000'003};

TEST(LocalMessage, BytesOfEverySizeArriveInOrder) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    uint64_t sequence = 0;
    for (const int64_t nbytes : kSizes) {
      const auto bytes = random_bytes(nbytes, static_cast<uint64_t>(nbytes));
      ++sequence;
      if (rank == 0) {
        const Status status = test::send(*transport, 1, message(OperationKind::send, sequence, nbytes, 1), bytes.data(), nbytes);
        ASSERT_TRUE(status.ok()) << status.text();
      } else {
        std::vector<uint8_t> received(bytes.size());
        const Status status = test::recv(*transport, 0, message(OperationKind::recv, sequence, nbytes, 0), received.data(), nbytes);
        ASSERT_TRUE(status.ok()) << status.text();
        EXPECT_EQ(received, bytes);
      }
    }
  });
}

/// A group that was given little for rounds takes no more for the messages of each pair.
TEST(LocalMessage, LittleStagingIsEnoughForLongMessages) {
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2, {20'000, 8192});
    EXPECT_LT(transport->staging_nbytes(), 4 * 8192);
    const auto bytes = random_bytes(100'003, 1);
    if (rank == 0) {
      EXPECT_TRUE(test::send(*transport, 1, message(OperationKind::send, 1, 100'003, 1), bytes.data(), 100'003).ok());
    } else {
      std::vector<uint8_t> received(bytes.size());
      EXPECT_TRUE(test::recv(*transport, 0, message(OperationKind::recv, 1, 100'003, 0), received.data(), 100'003).ok());
      EXPECT_EQ(received, bytes);
    }
  });
}

TEST(LocalMessage, AllPairsExchangeAtTheSameTimeAsRounds) {
  constexpr int64_t kRanks = 4;
  constexpr int64_t kBytes = 200'000;
  const std::string name = fresh_name();
  run_thread_ranks(kRanks, [&](int64_t rank) {
    const auto transport = connect(name, rank, kRanks);
    std::vector<std::vector<uint8_t>> sent;
    std::vector<std::vector<uint8_t>> received(kRanks, std::vector<uint8_t>(kBytes));
    std::vector<bool> send_done(kRanks), recv_done(kRanks);
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      sent.push_back(random_bytes(kBytes, static_cast<uint64_t>(rank * kRanks + peer)));
      if (peer == rank) continue;
      const auto at = static_cast<size_t>(peer);
      ASSERT_TRUE(transport->messages().send_start(peer, message(OperationKind::send, 1, kBytes, peer), {sent[at].data(), kBytes}).ok());
      ASSERT_TRUE(transport->messages().recv_start(peer, message(OperationKind::recv, 1, kBytes, peer), received[at].data(), kBytes).ok());
    }
    uint64_t barriers = 0;
    const Status status = test::await(*transport, [&](bool *ready) {
      *ready = true;
      for (int64_t peer = 0; peer < kRanks; ++peer) {
        if (peer == rank) continue;
        const auto at = static_cast<size_t>(peer);
        bool done = send_done[at];
        if (!done) ZERO_TRY(transport->messages().send_poll(peer, &done));
        send_done[at] = done;
        bool got = recv_done[at];
        if (!got) ZERO_TRY(transport->messages().recv_poll(peer, &got));
        recv_done[at] = got;
        *ready = *ready && done && got;
      }
      if (barriers < 20) ZERO_TRY(barrier(*transport, ++barriers));
      return Status();
    });
    ASSERT_TRUE(status.ok()) << status.text();
    while (barriers < 20) ASSERT_TRUE(barrier(*transport, ++barriers).ok());
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(received[static_cast<size_t>(peer)], random_bytes(kBytes, static_cast<uint64_t>(peer * kRanks + rank)));
    }
    ASSERT_TRUE(barrier(*transport, ++barriers).ok());
  });
}

TEST(LocalMessage, SharedMemoryIsSentInPlace) {
  constexpr int64_t kBytes = 1 << 20;
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    std::shared_ptr<Mapping> arena;
    ASSERT_TRUE(Mapping::create_shared(kBytes, &arena).ok());
    std::vector<PeerMemory> peers;
    ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
    const auto bytes = random_bytes(kBytes, 5);
    if (rank == 0) {
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t *>(arena->data()));
      EXPECT_TRUE(test::send(*transport, 1, message(OperationKind::send, 1, kBytes - 3, 1), arena->data() + 3, kBytes - 3).ok());
    } else {
      std::vector<uint8_t> received(kBytes - 3);
      EXPECT_TRUE(test::recv(*transport, 0, message(OperationKind::recv, 1, kBytes - 3, 0), received.data(), kBytes - 3).ok());
      EXPECT_TRUE(std::equal(received.begin(), received.end(), bytes.begin() + 3));
    }
    EXPECT_TRUE(barrier(*transport, 1).ok());
  });
}

/// The receiver looks only when the sender has failed: what was staged is whole, what lies in the sender's memory may not be.
TEST(LocalMessage, WhatIsReadFromASenderThatFailedIsAnError) {
  for (const bool shared : {true, false}) {
    const std::string name = fresh_name();
    std::atomic<int> stage{0};
    run_thread_ranks(2, [&](int64_t rank) {
      const auto transport = connect(name, rank, 2);
      std::shared_ptr<Mapping> arena;
      ASSERT_TRUE(Mapping::create_shared(4096, &arena).ok());
      std::vector<PeerMemory> peers;
      ASSERT_TRUE(run_task(transport->share(arena, &peers, 20'000)).ok());
      std::vector<std::byte> own(4096);
      const auto reach = [&](int wanted) {
        while (stage < wanted) std::this_thread::yield();
      };
      bool done = false;
      if (rank == 1) {
        ASSERT_TRUE(transport->messages().recv_start(0, message(OperationKind::recv, 1, 4096, 0), own.data(), 4096).ok());
        stage = 1;
        reach(2);
        EXPECT_EQ(transport->messages().recv_poll(0, &done).code(), shared ? ZERO_E_TIMEOUT : ZERO_OK);
        EXPECT_NE(done, shared);
        return;
      }
      reach(1);
      const std::byte *from = shared ? arena->data() : own.data();
      ASSERT_TRUE(transport->messages().send_start(1, message(OperationKind::send, 1, 4096, 1), {from, 4096}).ok());
      ASSERT_TRUE(transport->messages().send_poll(1, &done).ok());
      EXPECT_FALSE(done);
      transport->peers().poison(Status::error(ZERO_E_TIMEOUT, "rank 0 waits no longer"));
      stage = 2;
    });
  }
}

TEST(LocalMessage, MismatchIsAnErrorOnBothSidesBeforeAnyByteIsWritten) {
  for (const int64_t nbytes : {0, 1, 100, 200'000}) {
    const std::string name = fresh_name();
    run_thread_ranks(2, [&](int64_t rank) {
      const auto transport = connect(name, rank, 2);
      std::vector<uint8_t> bytes(300'000, static_cast<uint8_t>(rank));
      const Status status = rank == 0 ? test::send(*transport, 1, message(OperationKind::send, 1, nbytes, 1), bytes.data(), nbytes)
                                      : test::recv(*transport, 0, message(OperationKind::recv, 1, nbytes + 1, 0), bytes.data(), nbytes + 1);
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
      EXPECT_TRUE(contains(status, "count " + std::to_string(nbytes)) && contains(status, "count " + std::to_string(nbytes + 1)))
          << status.text();
      EXPECT_EQ(bytes, std::vector<uint8_t>(300'000, static_cast<uint8_t>(rank)));
      EXPECT_EQ(barrier(*transport, 1).code(), ZERO_E_MISMATCH);
      EXPECT_EQ(transport->messages().send_start(1 - rank, {}, {}).code(), ZERO_E_MISMATCH);
      EXPECT_EQ(transport->messages().recv_start(1 - rank, {}, nullptr, 0).code(), ZERO_E_MISMATCH);
    });
  }
}

/// Rank 0 sends pieces under fingerprints that fit, but whose bytes do not; returns what rank 1 got, which expects `expected` bytes.
Status receive_misfit(const std::vector<int64_t> &pieces, int64_t expected) {
  const std::string name = fresh_name();
  Status received;
  run_thread_ranks(2, [&](int64_t rank) {
    const auto transport = connect(name, rank, 2);
    std::vector<uint8_t> bytes(256);
    if (rank == 1) {
      received = test::recv(*transport, 0, message(OperationKind::recv, 1, 64, 0), bytes.data(), expected);
      return;
    }
    Status sent;
    for (size_t i = 0; sent.ok() && i < pieces.size(); ++i) {
      sent = test::send(*transport, 1, message(OperationKind::send, 1, 64, 1), bytes.data(), pieces[i]);
    }
    EXPECT_EQ(sent.code(), ZERO_E_TRANSPORT) << sent.text();
  });
  return received;
}

TEST(LocalMessage, MoreBytesThanThereIsRoomForAreAnErrorOnBothSides) {
  const Status status = receive_misfit({64}, 32);
  EXPECT_EQ(status.code(), ZERO_E_TRANSPORT);
  EXPECT_TRUE(contains(status, "sent 64 bytes, rank 1 has room for 32")) << status.text();
}

TEST(LocalMessage, AMessageInsideAnotherIsAnErrorOnBothSides) {
  const Status status = receive_misfit({64, 64}, 128);
  EXPECT_EQ(status.code(), ZERO_E_TRANSPORT);
  EXPECT_TRUE(contains(status, "out of order")) << status.text();
}

TEST(LocalMessage, PeerThatLeavesIsNamedToSenderAndReceiver) {
  for (const bool sending : {true, false}) {
    const std::string name = fresh_name();
    run_thread_ranks(2, [&](int64_t rank) {
      const auto transport = connect(name, rank, 2);
      if (rank == 1) return;
      std::vector<uint8_t> bytes(1000);
      const Status status = sending ? test::send(*transport, 1, message(OperationKind::send, 4, 1000, 1), bytes.data(), 1000)
                                    : test::recv(*transport, 1, message(OperationKind::recv, 4, 1000, 1), bytes.data(), 1000);
      EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT);
      EXPECT_TRUE(contains(status, "rank 1 (process ") && contains(status, sending ? "#4 send(u8" : "#4 recv(u8")) << status.text();
    });
  }
}

TEST(LocalMessage, ProgressReportsOfAMessageNameItsPeerOnly) {
  const std::string name = fresh_name();
  run_thread_ranks(3, [&](int64_t rank) {
    const auto transport = connect(name, rank, 3);
    if (rank == 0) {
      const std::string text = transport->peers().progress_report(message(OperationKind::recv, 1, 8, 2));
      EXPECT_NE(text.find("rank 2 (process "), std::string::npos) << text;
      EXPECT_EQ(text.find("rank 1 "), std::string::npos) << text;
    }
    EXPECT_TRUE(barrier(*transport, 1).ok());
  });
}

}  // namespace
}  // namespace zero::local_message_test
