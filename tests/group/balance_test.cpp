/// @file Shares of work by measured speed: against all ways to divide, against float64, and over many steps.
#include "group/collectives/balance.h"

#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace zero::test::balance_test {
namespace {

using Shares = std::vector<int64_t>;

/// What shares would be without rounding, in units.
std::vector<double> wanted_units(const std::vector<Measured> &measured, int64_t units) {
  const auto ranks = measured.size();
  std::vector<double> speeds(ranks);
  double sum = 0;
  double known = 0;
  double items = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto &[made, ns] = measured[rank];
    items += static_cast<double>(made);
    if (made == 0 || ns == 0) continue;
    speeds[rank] = static_cast<double>(made) / static_cast<double>(ns);
    sum += speeds[rank];
    known += 1;
  }
  for (double &speed : speeds) speed = speed > 0 ? speed : known > 0 ? sum / known : 1;
  sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  double moved = 0;
  for (size_t rank = 0; rank < ranks && items > 0; ++rank) {
    moved += std::max(speeds[rank] / sum - static_cast<double>(measured[rank].items) / items, 0.0);
  }
  const double part = moved > 0.125 ? 0.125 / moved : 1;
  std::vector<double> wanted;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const double before = items > 0 ? static_cast<double>(measured[rank].items) / items : 0;
    wanted.push_back(static_cast<double>(units) * (before + (speeds[rank] / sum - before) * (items > 0 ? part : 1)));
  }
  return wanted;
}

double distance(const Shares &shares, const std::vector<double> &wanted) {
  double sum = 0;
  for (size_t rank = 0; rank < shares.size(); ++rank) sum += std::abs(static_cast<double>(shares[rank]) - wanted[rank]);
  return sum;
}

/// The smallest distance of any way to divide `units` over the ranks from `rank` on, where each gets `least` at least.
double least_distance(Shares &shares, size_t rank, int64_t units, int64_t least, const std::vector<double> &wanted) {
  if (rank + 1 == shares.size()) {
    shares[rank] = units;
    return units < least ? INFINITY : distance(shares, wanted);
  }
  double best = INFINITY;
  for (int64_t share = least; share <= units; ++share) {
    shares[rank] = share;
    best = std::min(best, least_distance(shares, rank + 1, units - share, least, wanted));
  }
  return best;
}

std::vector<Measured> random_measurements(std::mt19937_64 &random, int64_t ranks) {
  std::vector<Measured> measured(static_cast<size_t>(ranks));
  const int64_t most = int64_t{1} << (random() % 41);
  for (Measured &one : measured) {
    one.items = random() % 8 == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
    one.ns = random() % 8 == 0 ? 0 : static_cast<int64_t>(random() % (uint64_t{1} << (random() % 60))) + 1;
  }
  return measured;
}

TEST(Balance, NoOtherDivisionIsCloserToTheWantedShares) {
  std::mt19937_64 random(11);
  const int64_t cases = full_tests() ? 10'000 : 1'000;
  for (int64_t i = 0; i < cases; ++i) {
    const auto ranks = static_cast<int64_t>(random() % 4) + 1;
    const auto units = static_cast<int64_t>(random() % 13);
    const int64_t unit = int64_t{1} << (random() % 8);
    const std::vector<Measured> measured = random_measurements(random, ranks);
    Shares shares = balanced_shares(measured, units * unit, unit);
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), units * unit);
    const int64_t least = units >= ranks ? 1 : 0;
    for (int64_t &share : shares) {
      ASSERT_EQ(share % unit, 0);
      share /= unit;
      ASSERT_GE(share, least);
    }
    const std::vector<double> wanted = wanted_units(measured, units);
    Shares any(shares.size());
    EXPECT_LE(distance(shares, wanted), least_distance(any, 0, units, least, wanted) + 1e-6) << "case " << i;
  }
}

TEST(Balance, LargeSharesAreWithinAUnitOfTheWantedOnes) {
  std::mt19937_64 random(12);
  const int64_t cases = full_tests() ? 10'000 : 1'000;
  for (int64_t i = 0; i < cases; ++i) {
    const auto ranks = static_cast<int64_t>(random() % 1024) + 1;
    const int64_t units = ranks * 64 + static_cast<int64_t>(random() % 1'000'000);
    const std::vector<Measured> measured = random_measurements(random, ranks);
    const Shares shares = balanced_shares(measured, units, 1);
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), units);
    const std::vector<double> wanted = wanted_units(measured, units);
    int64_t raised = 0;
    for (const double each : wanted) raised += each < 1 ? 1 : 0;
    const auto largest = std::max_element(wanted.begin(), wanted.end());
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      const double allowed = &wanted[rank] == &*largest ? 1.01 + static_cast<double>(raised) : 1.01;
      ASSERT_NEAR(static_cast<double>(shares[rank]), std::max(wanted[rank], 1.0), allowed) << "case " << i << ", rank " << rank;
    }
  }
}

TEST(Balance, EqualRemaindersFavourLowerRanks) {
  EXPECT_EQ(balanced_shares(std::vector<Measured>(4), 10, 1), (Shares{3, 3, 2, 2}));
  EXPECT_EQ(balanced_shares(std::vector<Measured>(4, {7, 9}), 64 * 3, 64), (Shares{64, 64, 64, 0}));
  EXPECT_EQ(balanced_shares(std::vector<Measured>(3, {7, 9}), 0, 64), (Shares{0, 0, 0}));
}

/// At the ends of what may be given.
TEST(Balance, ExtremeSpeedsAreRight) {
  constexpr int64_t kMost = kMostBalancedItems;
  const std::vector<Measured> unlike{{kMost, 1}, {1, 1'000'000'000'000'000'000}};
  EXPECT_EQ(balanced_shares(unlike, kMost, 1), (Shares{kMost - 1, 1}));
  EXPECT_EQ(balanced_shares(std::vector<Measured>(1024, {kMost, 1}), kMost, 1), Shares(1024, kMost / 1024));
}

/// Of a step in which each rank makes `shares` at its speed: the slowest rank's time by that of the best division.
double excess(const Shares &shares, const std::vector<double> &speeds) {
  double slowest = 0;
  for (size_t rank = 0; rank < shares.size(); ++rank) slowest = std::max(slowest, static_cast<double>(shares[rank]) / speeds[rank]);
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  return slowest * all / static_cast<double>(std::accumulate(shares.begin(), shares.end(), int64_t{0}));
}

Shares next_shares(const Shares &shares, const std::vector<double> &speeds, int64_t total, int64_t unit) {
  std::vector<Measured> measured;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    measured.push_back({shares[rank], std::llround(1e9 * static_cast<double>(shares[rank]) / speeds[rank])});
  }
  return balanced_shares(measured, total, unit);
}

/// Ranks of up to four times the speed of others; a unit is a hundredth of the smallest share and less.
TEST(Balance, AfterFiveCallsRanksNeedTheSameTimeAndSharesStay) {
  std::mt19937_64 random(13);
  for (int64_t i = 0; i < 1'000; ++i) {
    const auto ranks = static_cast<int64_t>(random() % 7) + 2;
    std::vector<double> speeds;
    for (int64_t rank = 0; rank < ranks; ++rank) speeds.push_back(1 + static_cast<double>(random() % 3001) / 1000);
    const int64_t total = 4096 * ranks;
    Shares shares = balanced_shares(std::vector<Measured>(static_cast<size_t>(ranks)), total, 4);
    for (int64_t call = 0; call < 5; ++call) shares = next_shares(shares, speeds, total, 4);
    EXPECT_LE(excess(shares, speeds), 1.05) << "case " << i;
    for (int64_t call = 0; call < 20; ++call) {
      const Shares next = next_shares(shares, speeds, total, 4);
      for (size_t rank = 0; rank < shares.size(); ++rank) EXPECT_LE(std::abs(next[rank] - shares[rank]), 4) << "case " << i;
      shares = next;
    }
  }
}

/// A rank that stalls once for a hundred steps' time keeps nearly all of its work.
TEST(Balance, OneSlowMomentMovesAnEighth) {
  const Shares shares = balanced_shares(std::vector<Measured>{{1000, 1000}, {1000, 100'000}}, 2000, 1);
  EXPECT_EQ(shares, (Shares{1250, 750}));
}

}  // namespace
}  // namespace zero::test::balance_test
