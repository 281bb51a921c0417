/// @file The plan: layout, buckets, cuts and order are pure arithmetic that must hold for any model.
#include "engine/config/shard_weights.h"
#include "engine/gradients/ready_ranges.h"
#include "engine/layout/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace zero::test::plan_test {
namespace {

std::vector<int64_t> backwards(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::vector<TensorShape> tensors_of(const std::vector<int64_t> &counts) {
  std::vector<TensorShape> tensors;
  for (const int64_t count : counts) tensors.push_back({count});
  return tensors;
}

Plan make_plan(const std::vector<TensorShape> &tensors, const std::vector<SpaceShape> &spaces, const std::vector<int64_t> &weights,
               int64_t rank) {
  const Weights shares(weights);
  return Plan({tensors, spaces, backwards(tensors.size()), shares, rank});
}

Plan make_plan(const std::vector<int64_t> &counts, int64_t bucket_elements, const std::vector<int64_t> &weights, int64_t rank) {
  return make_plan(tensors_of(counts), {{bucket_elements}}, weights, rank);
}

TEST(Plan, BucketsTakeWholeTensorsUntilTheyWouldPassTheirSize) {
  const Plan plan = make_plan({512, 512, 512, 5000, 256}, 1024, {1}, 0);
  ASSERT_EQ(plan.bucket_count(), 4);
  EXPECT_EQ(plan.bucket(0).flat, (Range{0, 1024}));
  EXPECT_EQ(plan.bucket(1).flat, (Range{1024, 1536}));
  EXPECT_EQ(plan.bucket(2).flat, (Range{1536, 6536}));
  EXPECT_EQ(plan.bucket(3).flat, (Range{6656, 6912}));
  EXPECT_EQ(plan.order(), (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(Plan, SmallTensorsThatShareALineShareABucket) {
  const Plan plan = make_plan({250, 100, 100, 300}, 256, {1}, 0);
  ASSERT_EQ(plan.bucket_count(), 3);
  EXPECT_EQ(plan.param(1).flat.begin, 256);
  EXPECT_EQ(plan.param(2).flat.begin, 384);
  EXPECT_EQ(plan.param(1).bucket, plan.param(2).bucket);
  EXPECT_EQ(plan.bucket(1).gaps, (std::vector<Range>{{100, 128}}));
}

TEST(Plan, AModelWithoutElementsHasNoBuckets) {
  const Plan plan = make_plan({0, 0}, 256, {1, 1}, 1);
  EXPECT_EQ(plan.bucket_count(), 0);
  EXPECT_EQ(plan.element_count(), 0);
  EXPECT_TRUE(plan.views().empty());
}

TEST(Plan, AnOrderMovesReductionsAndNothingElse) {
  const std::vector<int64_t> counts = {512, 512, 512};
  const Weights shares(std::vector<int64_t>{1, 1});
  const std::vector<int64_t> order = {1, 0, 2};
  const std::vector<SpaceShape> spaces = {{512}};
  const Plan given({tensors_of(counts), spaces, order, shares, 0});
  const Plan standard = make_plan(counts, 512, {1, 1}, 0);
  EXPECT_EQ(given.order(), (std::vector<int64_t>{1, 0, 2}));
  for (int64_t id = 0; id < 3; ++id) EXPECT_EQ(given.param(id).flat, standard.param(id).flat);
}

TEST(Plan, EveryElementHasOneOwnerAndOnePlace) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto ranks = static_cast<int64_t>(random() % 9) + 1;
    std::vector<int64_t> weights;
    for (int64_t rank = 0; rank < ranks; ++rank) weights.push_back(rank == 0 ? 1 : static_cast<int64_t>(random() % 4));
    std::vector<int64_t> counts;
    for (size_t i = random() % 30; i > 0; --i) {
      counts.push_back(static_cast<int64_t>(std::exp2(static_cast<double>(random() % 130) / 10)) - 1);
    }
    const auto bucket = static_cast<int64_t>(256 << (random() % 6));
    int64_t owned = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Plan plan = make_plan(counts, bucket, weights, rank);
      owned += plan.own_element_count();
      EXPECT_EQ(plan.element_count(), std::accumulate(counts.begin(), counts.end(), int64_t{0}));
      for (const PlannedBucket &planned : plan.buckets()) {
        EXPECT_EQ(planned.flat.begin % kLine, 0);
        EXPECT_EQ(planned.own.begin % kLine == 0 || planned.own.empty(), true);
      }
      for (size_t id = 0; id < counts.size(); ++id) {
        const PlannedParam &param = plan.params()[id];
        EXPECT_EQ(param.flat.begin % kTensorStart, 0);
        EXPECT_TRUE(counts[id] < kLine || param.flat.begin % kLine == 0);
        if (counts[id] == 0) continue;
        int64_t end = 0;
        for (const Range &cut : plan.param_cuts(static_cast<int64_t>(id))) {
          if (cut.empty()) continue;
          EXPECT_EQ(cut.begin, end);
          end = cut.end;
        }
        EXPECT_EQ(end, counts[id]);
      }
    }
    EXPECT_EQ(owned, std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  }
}

TEST(Plan, TensorsOfDifferentSpacesNeverShareABucket) {
  const std::vector<TensorShape> tensors = {{300, 0}, {10, 1}, {20, 0}, {30, 1}, {400, 1}};
  const Plan plan = make_plan(tensors, {{1024}, {1024}}, {1, 1}, 0);
  ASSERT_EQ(plan.bucket_count(), 2);
  EXPECT_EQ(plan.bucket(0).params, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(plan.bucket(1).params, (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(plan.param(1).flat, (Range{0, 10}));
  EXPECT_EQ(plan.param(3).flat, (Range{32, 62}));
  EXPECT_EQ(plan.element_count(), 760);
}

TEST(Plan, SpacesThatDoNotTrainAreNotReduced) {
  const Plan plan = make_plan({{300, 0}, {300, 1}}, {{1024, false}, {1024}}, {1}, 0);
  EXPECT_EQ(plan.order(), (std::vector<int64_t>{1}));
}

/// Buckets of several spaces wait for gradients at once where their tensors take turns.
TEST(Plan, HoldsAsManyBucketsAsTheOrderOfGradientsLeavesOpen) {
  EXPECT_EQ(make_plan({512, 512, 512}, 512, {1, 1}, 0).held_bucket_count(), 2);
  EXPECT_EQ(make_plan({512}, 512, {1, 1}, 0).held_bucket_count(), 1);
  EXPECT_EQ(make_plan({0}, 512, {1, 1}, 0).held_bucket_count(), 0);
  const std::vector<SpaceShape> spaces = {{4096}, {4096}, {4096}, {4096, false}};
  EXPECT_EQ(make_plan({{300, 0}, {300, 1}, {300, 2}, {300, 3}, {300, 0}, {300, 1}, {300, 2}, {300, 3}}, spaces, {1}, 0).held_bucket_count(),
            3);
  EXPECT_EQ(make_plan({{300, 0}, {300, 0}, {300, 1}, {300, 1}, {300, 2}, {300, 2}}, spaces, {1}, 0).held_bucket_count(), 2);
  EXPECT_EQ(make_plan({{300, 0}, {300, 1}, {300, 2}, {300, 0, 0}}, spaces, {1}, 0).held_bucket_count(), 2);
  EXPECT_EQ(make_plan({{300, 0}, {300, 1}, {300, 2}, {300, 0, 0}, {300, 1, 1}}, spaces, {1}, 0).held_bucket_count(), 3);
}

TEST(Plan, TiedTensorsShareOnePlaceAndCountOnce) {
  const Plan plan = make_plan({{300, 0}, {500, 0}, {300, 0, 0}}, {{256}}, {1, 1}, 1);
  EXPECT_EQ(plan.element_count(), 800);
  EXPECT_EQ(plan.param(2).flat, plan.param(0).flat);
  EXPECT_EQ(plan.param_cuts(2), plan.param_cuts(0));
  // The gradient of the first bucket is complete when the last of both names is ready.
  EXPECT_EQ(plan.order(), (std::vector<int64_t>{1, 0}));
}

TEST(Plan, WholeTensorsGoToOneRankEachAndShareTheCost) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    const auto ranks = static_cast<int64_t>(random() % 6) + 1;
    std::vector<TensorShape> tensors;
    double total = 0;
    double largest = 0;
    for (size_t i = random() % 30 + 1; i > 0; --i) {
      const auto count = static_cast<int64_t>(random() % 3000) + 1;
      tensors.push_back({count, 0, -1, static_cast<double>(count)});
      total += static_cast<double>(count);
      largest = std::max(largest, static_cast<double>(count));
    }
    double most = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Plan plan = make_plan(tensors, {{256, true, true}}, std::vector<int64_t>(static_cast<size_t>(ranks), 1), rank);
      ASSERT_EQ(plan.bucket_count(), static_cast<int64_t>(tensors.size()));
      for (const PlannedBucket &bucket : plan.buckets()) {
        EXPECT_EQ(bucket.flat.begin % kLine, 0);
        EXPECT_TRUE(bucket.own.empty() || bucket.own == (Range{0, bucket.flat.count()}));
      }
      most = std::max(most, static_cast<double>(plan.own_element_count()));
    }
    // Graham's bound over the best possible, which is at least the mean and at least the largest.
    EXPECT_LE(most, 4.0 / 3.0 * std::max(total / static_cast<double>(ranks), largest) + largest);
  }
}

TEST(ReadyRanges, KnowWhatIsReadyAndWhatIsMissing) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    constexpr int64_t kWhole = 60;
    std::vector<bool> ready(kWhole);
    ReadyRanges ranges;
    for (int i = 0; i < 30; ++i) {
      const auto begin = static_cast<int64_t>(random() % kWhole);
      const Range range{begin, std::min<int64_t>(kWhole, begin + static_cast<int64_t>(random() % 9))};
      const bool taken = std::any_of(ready.begin() + range.begin, ready.begin() + range.end, [](bool bit) { return bit; });
      ASSERT_EQ(ranges.overlaps(range), taken);
      if (taken) continue;
      ranges.add(range);
      std::fill(ready.begin() + range.begin, ready.begin() + range.end, true);
    }
    EXPECT_EQ(ranges.count(), std::count(ready.begin(), ready.end(), true));
    std::vector<bool> missing(kWhole);
    ranges.for_each_missing(kWhole, [&](Range range) { std::fill(missing.begin() + range.begin, missing.begin() + range.end, true); });
    for (size_t i = 0; i < ready.size(); ++i) EXPECT_NE(ready[i], missing[i]);
    const auto begin = static_cast<int64_t>(random() % kWhole);
    const Range asked{begin, std::min<int64_t>(kWhole, begin + static_cast<int64_t>(random() % 20))};
    int64_t at = asked.begin;
    ranges.for_each_part(asked, [&](Range part, bool held) {
      EXPECT_EQ(part.begin, at);
      for (int64_t i = part.begin; i < part.end; ++i) EXPECT_EQ(ready[static_cast<size_t>(i)], held);
      at = part.end;
    });
    EXPECT_EQ(at, asked.end);
    const bool covered = std::all_of(ready.begin() + asked.begin, ready.begin() + asked.end, [](bool bit) { return bit; });
    EXPECT_EQ(ranges.covers(asked), covered);
    ranges.add(asked);
    EXPECT_TRUE(ranges.covers(asked));
  }
}

TEST(ShardWeights, AreOneNonNegativeIntegerPerRank) {
  std::vector<int64_t> weights;
  EXPECT_TRUE(parse_shard_weights("", 3, &weights).ok());
  EXPECT_EQ(weights, (std::vector<int64_t>{1, 1, 1}));
  EXPECT_TRUE(parse_shard_weights("2,0,1", 3, &weights).ok());
  EXPECT_EQ(weights, (std::vector<int64_t>{2, 0, 1}));
  for (const char *wrong :
       {"1,1", "1,1,1,1", "1,,1", "1,1,", ",1,1", "1,-1,1", "0,0,0", "1 ,1,1", "x", "1,1,9999999999999999999", "2147483648,1,1"}) {
    EXPECT_EQ(parse_shard_weights(wrong, 3, &weights).code(), ZERO_E_INVALID_ARGUMENT) << wrong;
  }
}

}  // namespace
}  // namespace zero::test::plan_test
