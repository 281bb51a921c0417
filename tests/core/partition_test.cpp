/// @file Partition maths: shares, shards and the layout of the flat space, on chosen and on random
/// sizes.
#include "core/partition.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

namespace zero::partition_test {
namespace {

int64_t random_cases(int64_t subset, int64_t full) { return test::full_tests() ? full : subset; }

/// Spread evenly over magnitudes, 0 included.
int64_t random_size(std::mt19937_64 &random) {
  const uint64_t bits = random() % 62;
  return static_cast<int64_t>(random() & ((uint64_t{1} << bits) - 1));
}

TEST(Range, IntersectionIsWhatBothHold) {
  for (int64_t first = 0; first < 6; ++first) {
    for (int64_t second = 0; second < 6; ++second) {
      const Range shared = intersect({first, first + 2}, {second, second + 2});
      const int64_t expected = std::max<int64_t>(0, 2 - std::abs(first - second));
      EXPECT_EQ(shared.count(), expected);
      EXPECT_EQ(shared.empty(), expected == 0);
    }
  }
  EXPECT_EQ(intersect({0, 10}, {5, 20}), (Range{5, 10}));
  EXPECT_EQ(intersect({5, 20}, {0, 10}), (Range{5, 10}));
  EXPECT_EQ(intersect({0, 20}, {5, 10}), (Range{5, 10}));
  EXPECT_TRUE(intersect({0, 5}, {5, 10}).empty());
  EXPECT_EQ(intersect({0, 5}, {8, 10}).count(), 0);
  EXPECT_FALSE((Range{1, 2}).empty());
}

TEST(RoundUp, GivesTheNextMultiple) {
  EXPECT_EQ(round_up(0, 256), 0);
  EXPECT_EQ(round_up(1, 256), 256);
  EXPECT_EQ(round_up(256, 256), 256);
  EXPECT_EQ(round_up(257, 256), 512);
}

TEST(ScaleFloor, DoesNotOverflow) {
  EXPECT_EQ(scale_floor(INT64_MAX, 1 << 30, 1 << 30), INT64_MAX);
  EXPECT_EQ(scale_floor(INT64_MAX, 1, 2), INT64_MAX / 2);
  EXPECT_EQ(scale_floor(7, 2, 3), 4);
}

TEST(EvenShare, FollowsTheFormulaOfTheHeader) {
  for (const int64_t size : {1, 2, 3, 7, 8}) {
    for (const int64_t count : {0, 1, 2, 5, 8, 1000, 1001}) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const Range share = even_share(count, rank, size);
        EXPECT_EQ(share, (Range{rank * count / size, (rank + 1) * count / size}));
        EXPECT_EQ(share.begin, next);
        next = share.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

/// Shards follow one another, cover the range, are cut on lines, and differ from the exact share by
/// less than a line.
void expect_good_shards(const Weights &weights, const std::vector<int64_t> &given, Range whole) {
  const int64_t total = std::accumulate(given.begin(), given.end(), int64_t{0});
  const int64_t lines = round_up(whole.count(), kLine) / kLine;
  int64_t next = whole.begin;
  for (int64_t rank = 0; rank < weights.size(); ++rank) {
    const Range shard = weights.shard(whole, rank);
    ASSERT_EQ(shard.begin, next);
    ASSERT_GE(shard.end, shard.begin);
    ASSERT_TRUE(shard.end == whole.end || (shard.end - whole.begin) % kLine == 0);
    const double share = static_cast<double>(lines) * static_cast<double>(given[static_cast<size_t>(rank)]) / static_cast<double>(total);
    ASSERT_LE(std::abs(static_cast<double>(round_up(shard.count(), kLine) / kLine) - share), 1.0 + share * 1e-12);
    ASSERT_TRUE(given[static_cast<size_t>(rank)] != 0 || shard.empty());
    next = shard.end;
  }
  ASSERT_EQ(next, whole.end);
}

TEST(Weights, EqualShardsCoverTheRangeOnLines) {
  for (const int64_t size : {1, 2, 3, 4, 7, 1024}) {
    const Weights weights(size);
    EXPECT_EQ(weights.size(), size);
    const std::vector<int64_t> given(static_cast<size_t>(size), 1);
    for (const int64_t count : {0, 1, 255, 256, 257, 1024, 100'000}) expect_good_shards(weights, given, {512, 512 + count});
  }
}

TEST(Weights, OnlyTheLastShardThatIsNotEmptyHasATail) {
  const Weights weights(4);
  EXPECT_EQ(weights.shard({0, 300}, 0), (Range{0, 0}));
  EXPECT_EQ(weights.shard({0, 300}, 1), (Range{0, 256}));
  EXPECT_EQ(weights.shard({0, 300}, 3), (Range{256, 300}));
}

TEST(Weights, ShardsFollowTheGivenProportions) {
  const int64_t given[] = {2, 0, 1, 1};
  const Weights weights(given);
  EXPECT_EQ(weights.shard({0, 1024}, 0), (Range{0, 512}));
  EXPECT_TRUE(weights.shard({0, 1024}, 1).empty());
  EXPECT_EQ(weights.shard({0, 1024}, 2), (Range{512, 768}));
  EXPECT_EQ(weights.shard({0, 1024}, 3), (Range{768, 1024}));
}

TEST(Weights, RandomWeightsAndRangesAreCoveredOnLines) {
  std::mt19937_64 random(20);
  const int64_t cases = random_cases(2'000, 200'000);
  for (int64_t i = 0; i < cases && !testing::Test::HasFatalFailure(); ++i) {
    std::vector<int64_t> given(1 + random() % 9);
    for (int64_t &weight : given) weight = random() % 4 == 0 ? 0 : static_cast<int64_t>(random() % 1'000'000);
    given[random() % given.size()] += 1;
    const int64_t begin = random_size(random) / 2 / kLine * kLine;
    expect_good_shards(Weights(given), given, {begin, begin + random_size(random) / 2});
  }
  RecordProperty("cases", static_cast<int>(cases));
}

TEST(FlatLayout, LargeTensorsStartOnALineAndSmallOnesAlignedNeverCrossOne) {
  FlatLayout layout;
  EXPECT_EQ(layout.extent(), 0);
  EXPECT_EQ(layout.append(10), 0);
  EXPECT_EQ(layout.append(224), 32);
  EXPECT_EQ(layout.append(1), 256);
  EXPECT_EQ(layout.append(256), 512);
  EXPECT_EQ(layout.append(255), 768);
  EXPECT_EQ(layout.append(2), 1024);
  EXPECT_EQ(layout.append(0), 1056);
  EXPECT_EQ(layout.append(1'000), 1280);
  EXPECT_EQ(layout.extent(), 2280);
}

TEST(FlatLayout, RandomTensorsKeepTheRuleAndDoNotOverlap) {
  std::mt19937_64 random(21);
  const int64_t cases = random_cases(2'000, 200'000);
  for (int64_t i = 0; i < cases; ++i) {
    FlatLayout layout;
    for (uint64_t tensors = random() % 40; tensors > 0; --tensors) {
      const int64_t before = layout.extent();
      const auto count = static_cast<int64_t>(random() % (1 + (uint64_t{1} << (random() % 19))));
      const int64_t begin = layout.append(count);
      ASSERT_GE(begin, before);
      ASSERT_LT(begin - before, kLine);
      ASSERT_EQ(begin % kTensorStart, 0);
      ASSERT_EQ(layout.extent(), begin + count);
      ASSERT_TRUE(count < kLine || begin % kLine == 0);
      ASSERT_TRUE(count == 0 || count >= kLine || begin / kLine == (begin + count - 1) / kLine);
    }
  }
}

}  // namespace
}  // namespace zero::partition_test
