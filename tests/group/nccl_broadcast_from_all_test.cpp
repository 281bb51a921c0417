/// @file NcclBroadcastFromAll: the rounds that NCCL can broadcast, and their moves.
#include "group/nccl/nccl_broadcast_from_all.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace zero::test::nccl_broadcast_from_all_test {
namespace {

constexpr int64_t kRanks = 4;
constexpr int64_t kNbytes = 24;
constexpr int64_t kRest = 8;  ///< of these

/// The tables of a round in which every rank's piece goes to all; this rank's lies in its place in `whole`.
struct Tables {
  std::vector<std::byte> whole = std::vector<std::byte>(kRanks * kNbytes + 1);
  int64_t rank;
  std::vector<Offer> offers;
  std::vector<Arrival> arrivals;

  explicit Tables(int64_t self) : rank(self) {
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      offers.push_back({at(rank), kNbytes - kRest, kRest});
      arrivals.push_back({.nbytes = kNbytes - kRest, .rest_nbytes = kRest, .place = at(peer)});
    }
    offers[own()] = {};
    arrivals[own()] = {};
  }

  size_t own() const { return static_cast<size_t>(rank); }
  std::byte *at(int64_t peer) { return whole.data() + peer * kNbytes; }
  NcclBroadcastFromAll round() const { return {offers, arrivals, rank}; }
  void offer_all(const Offer &offer) {
    for (size_t peer = 0; peer < offers.size(); ++peer) {
      if (peer != own()) offers[peer] = offer;
    }
  }
};

std::vector<zero_nccl_move> moves_of(const NcclBroadcastFromAll &spread, bool all_in_order) {
  std::vector<zero_nccl_move> moves(3);
  spread.list_moves(all_in_order, moves);
  return moves;
}

void expect_move(const zero_nccl_move &move, const void *data, int64_t nbytes, int64_t peer, int64_t kind) {
  EXPECT_EQ(move.data, data);
  EXPECT_EQ(move.nbytes, nbytes);
  EXPECT_EQ(move.peer, peer);
  EXPECT_EQ(move.kind, kind);
}

TEST(NcclBroadcastFromAll, PiecesThatLieEndToEndAreOneGather) {
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    Tables tables(rank);
    ASSERT_TRUE(tables.round().possible());
    EXPECT_TRUE(tables.round().in_order());
    const std::vector<zero_nccl_move> moves = moves_of(tables.round(), true);
    ASSERT_EQ(moves.size(), 1);
    expect_move(moves[0], tables.at(0), kNbytes, rank, ZERO_NCCL_GATHER);
  }
}

TEST(NcclBroadcastFromAll, WhereAnotherRanksPiecesAreNotInOrderTheyAreBroadcasts) {
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    Tables tables(rank);
    const std::vector<zero_nccl_move> moves = moves_of(tables.round(), false);
    ASSERT_EQ(moves.size(), kRanks);
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      expect_move(moves[static_cast<size_t>(peer)], tables.at(peer), kNbytes, peer, ZERO_NCCL_BROADCAST);
    }
  }
}

TEST(NcclBroadcastFromAll, OrderIsThatOfPlacesLengthsAndTheOwnPiece) {
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    Tables elsewhere(rank);
    std::vector<std::byte> mine(kNbytes);
    elsewhere.offer_all({mine.data(), kNbytes - kRest, kRest});
    EXPECT_TRUE(elsewhere.round().possible());
    EXPECT_FALSE(elsewhere.round().in_order());
    expect_move(moves_of(elsewhere.round(), false)[static_cast<size_t>(rank)], mine.data(), kNbytes, rank, ZERO_NCCL_BROADCAST);
    for (int64_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      Tables shorter(rank);
      --shorter.arrivals[static_cast<size_t>(peer)].rest_nbytes;
      EXPECT_TRUE(shorter.round().possible());
      EXPECT_FALSE(shorter.round().in_order()) << "rank " << rank << " of " << peer;
      Tables shifted(rank);
      shifted.arrivals[static_cast<size_t>(peer)].place = shifted.at(peer) + 1;
      EXPECT_TRUE(shifted.round().possible());
      EXPECT_FALSE(shifted.round().in_order()) << "rank " << rank << " of " << peer;
    }
  }
}

TEST(NcclBroadcastFromAll, OneRankAloneMayHaveAPiece) {
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    constexpr int64_t kRoot = 2;
    Tables tables(rank);
    if (rank != kRoot) tables.offer_all({});
    for (size_t peer = 0; peer < tables.arrivals.size(); ++peer) {
      if (peer != kRoot) tables.arrivals[peer] = {};
    }
    ASSERT_TRUE(tables.round().possible());
    EXPECT_FALSE(tables.round().in_order());
    const std::vector<zero_nccl_move> moves = moves_of(tables.round(), false);
    ASSERT_EQ(moves.size(), 1);
    expect_move(moves[0], tables.at(kRoot), kNbytes, kRoot, ZERO_NCCL_BROADCAST);
  }
}

TEST(NcclBroadcastFromAll, NothingIsNoMove) {
  Tables tables(0);
  tables.offer_all({});
  for (Arrival &arrival : tables.arrivals) arrival = {};
  EXPECT_TRUE(tables.round().possible());
  EXPECT_FALSE(tables.round().in_order());
  EXPECT_TRUE(moves_of(tables.round(), false).empty());
}

TEST(NcclBroadcastFromAll, DifferentOffersAndMissingPlacesAreNone) {
  for (const size_t peer : {size_t{0}, size_t{1}, size_t{3}}) {
    Tables other_data(2);
    other_data.offers[peer].data = other_data.at(0) + 1;
    EXPECT_FALSE(other_data.round().possible());
    Tables other_length(2);
    --other_length.offers[peer].nbytes;
    EXPECT_FALSE(other_length.round().possible());
    Tables other_rest(2);
    ++other_rest.offers[peer].rest_nbytes;
    EXPECT_FALSE(other_rest.round().possible());
    Tables no_place(2);
    no_place.arrivals[peer].place = nullptr;
    EXPECT_FALSE(no_place.round().possible());
  }
}

}  // namespace
}  // namespace zero::test::nccl_broadcast_from_all_test
