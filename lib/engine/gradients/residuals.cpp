/// @file The places of residuals in buckets.
#include "engine/gradients/residuals.h"

namespace zero {
namespace {

/// The part of this cut of a bucket whose results a replica makes.
Range results_in_cut(Range cut, int64_t replica, int64_t replicas) {
  const Range made = CodedMean::results_of(cut.count(), replica, replicas);
  return {cut.begin + made.begin, cut.begin + made.end};
}

}  // namespace

std::vector<int64_t> Residuals::counts(const Plan &plan, int64_t replicas) {
  std::vector<int64_t> counts = own_counts(plan);
  for (int64_t &count : counts) count += CodedMean::most_results(count, replicas);
  return counts;
}

CodingLoss Residuals::of(int64_t bucket, int64_t sent) {
  if (!kept()) return {};
  const auto [from, to] = change(bucket);
  return {from, to, from + sent, to + sent};
}

CarriedPart Residuals::results_of(const Plan &plan, int64_t id, int64_t replica, int64_t replicas) const {
  const PlannedParam &placed = plan.param(id);
  if (placed.bucket < 0) return {};
  const PlannedBucket &bucket = plan.bucket(placed.bucket);
  const Range made = results_in_cut(bucket.own, replica, replicas);
  const Range elements = plan.part_of(id, made);
  return part(placed.bucket, elements, bucket.own.count() + placed.flat.begin - bucket.flat.begin + elements.begin - made.begin);
}

Range Residuals::results_in(const Plan &plan, int64_t id, int64_t rank, int64_t replica, int64_t replicas) {
  const int64_t home = plan.param(id).bucket;
  return home < 0 ? Range{} : plan.part_of(id, results_in_cut(plan.bucket_cut(home, rank), replica, replicas));
}

}  // namespace zero
