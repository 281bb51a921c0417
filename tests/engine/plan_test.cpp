/// @file The plan: layout, buckets, cuts and order are pure arithmetic that must hold for any model.
#include "engine/plan.h"
#include "engine/ready_ranges.h"
#include "engine/shard_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace zero::test {
namespace {

std::vector<int64_t> backwards(size_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

Plan make_plan(const std::vector<int64_t> &counts, int64_t bucket_elements, const std::vector<int64_t> &weights, int64_t rank) {
  const Weights shares(weights);
  return Plan({counts, backwards(counts.size()), bucket_elements, shares, rank});
}

TEST(Plan, BucketsTakeWholeTensorsUntilTheyWouldPassTheirSize) {
  const Plan plan = make_plan({512, 512, 512, 5000, 256}, 1024, {1}, 0);
  ASSERT_EQ(plan.bucket_count(), 4);
  EXPECT_EQ(plan.bucket(0).flat, (Range{0, 1024}));
  EXPECT_EQ(plan.bucket(1).flat, (Range{1024, 1536}));
  EXPECT_EQ(plan.bucket(2).flat, (Range{1536, 6536}));
  EXPECT_EQ(plan.bucket(3).flat, (Range{6656, 6912}));
  EXPECT_EQ(plan.largest_bucket(), 5000);
  EXPECT_EQ(plan.order(), (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(Plan, SmallTensorsThatShareALineShareABucket) {
  const Plan plan = make_plan({250, 100, 100, 300}, 256, {1}, 0);
  ASSERT_EQ(plan.bucket_count(), 3);
  EXPECT_EQ(plan.param(1).flat.begin, 256);
  EXPECT_EQ(plan.param(2).flat.begin, 368);
  EXPECT_EQ(plan.param(1).bucket, plan.param(2).bucket);
  EXPECT_EQ(plan.bucket(1).gaps, (std::vector<Range>{{100, 112}}));
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
  const Plan given({counts, order, 512, shares, 0});
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
      int64_t shard_end = 0;
      for (const PlannedBucket &planned : plan.buckets()) {
        EXPECT_EQ(planned.flat.begin % kLine, 0);
        EXPECT_EQ(planned.shard_begin, round_up(shard_end, kLine));
        shard_end = planned.shard_begin + planned.own.count();
        EXPECT_EQ(planned.own.begin % kLine == 0 || planned.own.empty(), true);
      }
      for (size_t id = 0; id < counts.size(); ++id) {
        const PlannedParam &param = plan.params()[id];
        EXPECT_EQ(param.flat.begin % kTensorStart, 0);
        EXPECT_TRUE(counts[id] < kLine || param.flat.begin % kLine == 0);
        if (counts[id] == 0) continue;
        int64_t end = 0;
        for (const Range &cut : param.cuts) {
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

TEST(MemoryFormula, IsThatOfThePaper) {
  constexpr int64_t kP = 1000;
  constexpr int64_t kOwn = 250;  // four ranks
  const int64_t expected[4] = {16 * kP, 8 * kP + 8 * kOwn, 4 * kP + 12 * kOwn, 16 * kOwn};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const MemoryFormula formula = memory_formula(stage, kP, kOwn, 2);
    EXPECT_EQ(formula.param_nbytes + formula.grad_nbytes + formula.state_nbytes, expected[stage]);
  }
  EXPECT_EQ(memory_formula(0, kP, kOwn, 0).state_nbytes, 0);
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
}  // namespace zero::test
