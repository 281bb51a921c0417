/// @file The NCCL module's table over an NCCL of threads: communicators, and moves that arrive.
#include "tests/group/nccl_seat.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace zero::nccl_table_test {
namespace {

using namespace test;

TEST_F(NcclTable, RanksOfOneIdMeetAndLeave) {
  for (int64_t size = 1; size <= 4; ++size) {
    const Id id = new_id();
    run_thread_ranks(size, [&](int64_t rank) {
      Seat seat(id, rank, size, rank);
      ASSERT_EQ(seat.settle(), 0);
      seat.end();
    });
  }
}

TEST_F(NcclTable, ACommunicatorIsBusyUntilAllRanksHaveCome) {
  const Id id = new_id();
  Seat zero(id, 0, 2, 0);
  EXPECT_EQ(zero.settle(100), kStillBusy);
  Seat one(id, 1, 2, 1);
  EXPECT_EQ(zero.settle(), 0);
  EXPECT_EQ(one.settle(), 0);
}

/// What a rank sends to another in a round, the same on all ranks: two pieces, which may be empty.
std::vector<char> piece(int64_t round, int64_t from, int64_t to, int64_t number) {
  std::mt19937_64 random(static_cast<uint64_t>(((round * 8 + from) * 8 + to) * 2 + number));
  std::vector<char> bytes(random() % 3 == 0 ? 0 : random() % 3000);
  for (char &byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// All pairs at once.
void run_round(const Seat &seat, int64_t round, int64_t rank, int64_t size) {
  std::vector<zero_nccl_move> moves;
  std::vector<std::pair<int64_t, std::vector<char>>> wanted;  // where, and what comes there
  int64_t offset = 0;
  for (int64_t peer = 0; peer < size; ++peer) {
    for (int64_t number = 0; number < 2 && peer != rank; ++number) {
      const std::vector<char> mine = piece(round, rank, peer, number);
      seat.write(mine, offset);
      moves.push_back(seat.send(peer, offset, static_cast<int64_t>(mine.size())));
      offset += static_cast<int64_t>(mine.size());
      wanted.emplace_back(offset, piece(round, peer, rank, number));
      moves.push_back(seat.recv(peer, offset, static_cast<int64_t>(wanted.back().second.size())));
      offset += static_cast<int64_t>(wanted.back().second.size());
    }
  }
  ASSERT_EQ(seat.move(moves), 0);
  ASSERT_EQ(seat.settle(), 0);
  seat.wait();
  for (const auto &[at, bytes] : wanted) {
    EXPECT_EQ(seat.read(at, static_cast<int64_t>(bytes.size())), bytes) << "rank " << rank << ", round " << round;
  }
}

TEST_F(NcclTable, RoundsOfMovesBetweenAllPairsArriveWhole) {
  constexpr int64_t kRounds = 20;
  for (int64_t size = 1; size <= 4; ++size) {
    for (const int64_t devices : {int64_t{1}, size}) {
      fake_nccl_late(devices * 50);
      const Id id = new_id();
      run_thread_ranks(size, [&](int64_t rank) {
        Seat seat(id, rank, size, rank % devices);
        ASSERT_EQ(seat.settle(), 0);
        for (int64_t round = 0; round < kRounds; ++round) run_round(seat, round, rank, size);
        seat.end();
      });
    }
  }
  int64_t nbytes = 0;
  for (int64_t size = 1; size <= 4; ++size) {
    for (int64_t i = 0; i < kRounds * size * size; ++i) {
      const int64_t from = i / size % size;
      const int64_t to = i % size;
      for (int64_t number = 0; number < 2 && from != to; ++number)
        nbytes += 2 * static_cast<int64_t>(piece(i / size / size, from, to, number).size());
    }
  }
  EXPECT_EQ(fake_nccl_moved(), nbytes);
}

TEST_F(NcclTable, MovesBetweenTwoRanksMeetInTheOrderInWhichBothGiveThem) {
  constexpr int64_t kMoves = 50;
  const Id id = new_id();
  run_thread_ranks(2, [&](int64_t rank) {
    Seat seat(id, rank, 2, rank);
    ASSERT_EQ(seat.settle(), 0);
    std::vector<char> bytes(kMoves);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    if (rank == 0) seat.write(bytes);
    for (int64_t i = 0; i < kMoves; ++i) {
      ASSERT_EQ(seat.move({rank == 0 ? seat.send(1, i, 1) : seat.recv(0, i, 1)}), 0);
      ASSERT_EQ(seat.settle(), 0);
    }
    EXPECT_EQ(seat.read(0, kMoves), bytes);
    seat.end();
  });
  EXPECT_EQ(fake_nccl_groups(), 2 * kMoves);
}

/// Rank r brings r + 1 bytes of r.
TEST_F(NcclTable, BroadcastsOfAllRanksGoOnTogether) {
  for (int64_t size = 1; size <= 4; ++size) {
    const Id id = new_id();
    run_thread_ranks(size, [&](int64_t rank) {
      Seat seat(id, rank, size, rank);
      ASSERT_EQ(seat.settle(), 0);
      seat.write(std::vector<char>(static_cast<size_t>(rank + 1), static_cast<char>(rank)), 8 * rank);
      std::vector<zero_nccl_move> moves;
      for (int64_t root = 0; root < size; ++root) moves.push_back(seat.broadcast(root, 8 * root, root + 1));
      ASSERT_EQ(seat.move(moves), 0);
      ASSERT_EQ(seat.settle(), 0);
      seat.wait();
      for (int64_t root = 0; root < size; ++root) {
        EXPECT_EQ(seat.read(8 * root, root + 1), std::vector<char>(static_cast<size_t>(root + 1), static_cast<char>(root)));
      }
      seat.end();
    });
  }
}

TEST_F(NcclTable, AGatherFindsEveryRanksPieceInItsPlace) {
  constexpr int64_t kNbytes = 5;
  for (int64_t size = 1; size <= 4; ++size) {
    const Id id = new_id();
    run_thread_ranks(size, [&](int64_t rank) {
      Seat seat(id, rank, size, rank);
      ASSERT_EQ(seat.settle(), 0);
      seat.write(std::vector<char>(kNbytes, static_cast<char>(rank + 1)), kNbytes * rank);
      ASSERT_EQ(seat.move({seat.gather(rank, 0, kNbytes)}), 0);
      ASSERT_EQ(seat.settle(), 0);
      seat.wait();
      for (int64_t peer = 0; peer < size; ++peer) {
        EXPECT_EQ(seat.read(kNbytes * peer, kNbytes), std::vector<char>(kNbytes, static_cast<char>(peer + 1)));
      }
      seat.end();
    });
  }
}

TEST_F(NcclTable, ARankThatMeetsAnotherForTheFirstTimeIsBusyUntilBothHaveCome) {
  const Id id = new_id();
  Seat zero(id, 0, 2, 0);
  Seat one(id, 1, 2, 1);
  ASSERT_EQ(zero.settle(), 0);
  ASSERT_EQ(one.settle(), 0);
  ASSERT_EQ(zero.move({zero.send(1, 0, 8)}), 0);
  EXPECT_EQ(zero.settle(100), kStillBusy);
  zero.wait();
  ASSERT_EQ(one.move({one.recv(0, 0, 8)}), 0);
  EXPECT_EQ(zero.settle(), 0);
  EXPECT_EQ(one.settle(), 0);
  zero.wait();
  one.wait();
}

TEST_F(NcclTable, RanksOnOneDeviceAreRefusedWhereNcclRefusesThem) {
  fake_nccl_allow_shared_device(0);
  const Id id = new_id();
  Seat zero(id, 0, 2, 0);
  Seat one(id, 1, 2, 0);
  EXPECT_EQ(zero.settle(), ncclInvalidUsage);
  EXPECT_EQ(one.settle(), ncclInvalidUsage);
}

TEST_F(NcclTable, MovesOfNothingAreNone) {
  Seat seat(new_id(), 0, 1, 0);
  ASSERT_EQ(seat.settle(), 0);
  EXPECT_EQ(seat.move({}), 0);
  EXPECT_EQ(seat.move({seat.send(0, 0, 0)}), 0);
  EXPECT_EQ(seat.settle(1), 0);
  EXPECT_EQ(fake_nccl_groups(), 0);
}

TEST_F(NcclTable, ErrorsHaveTexts) {
  char text[256] = "";
  fake_nccl_fail("ncclGetUniqueId", 0);
  Id id{};
  nccl().error_text(nccl().unique_id(id.data()), text, sizeof text);
  EXPECT_STREQ(text, "unhandled system error; its latest error: a failure on demand");
  std::thread([&] { nccl().error_text(ncclRemoteError, text, sizeof text); }).join();
  EXPECT_STREQ(text, "remote error");
  nccl().error_text(ncclRemoteError, text, 4);
  EXPECT_STREQ(text, "rem");
  text[0] = 'x';
  nccl().error_text(ncclRemoteError, text, 0);
  EXPECT_EQ(text[0], 'x');
}

TEST_F(NcclTable, TheVersionIsThatOfTheLibraryInTheProcess) {
  int64_t version = 0;
  EXPECT_EQ(nccl().version(&version), 0);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
  const zero_nccl_table *table = nullptr;
  fake_nccl_version(21801);
  const Status refused = load_nccl_module(ZERO_NCCL_FILE, &table);
  EXPECT_EQ(refused.code(), ZERO_E_MODULE);
  EXPECT_NE(std::strstr(refused.text(), "is 2.18.1, libzero needs 2.28.0 or newer"), nullptr) << refused.text();
  EXPECT_EQ(table, nullptr);
  fake_nccl_version(ZERO_NCCL_OLDEST);
  EXPECT_TRUE(load_nccl_module("", &table).ok());
}

}  // namespace
}  // namespace zero::nccl_table_test
