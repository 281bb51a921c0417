/// @file The arithmetic of the plan.
#include "engine/plan.h"

#include <algorithm>
#include <numeric>

namespace zero {

Plan::Plan(const PlanInput &input) {
  lay_out(input);
  cut_buckets(input);
  cut_params(input);
  set_order(input.order);
}

void Plan::open_bucket(int64_t begin) {
  PlannedBucket bucket;
  bucket.flat = {begin, begin};
  bucket.first_param = static_cast<int64_t>(params_.size());
  buckets_.push_back(std::move(bucket));
}

/// A bucket is closed when the next tensor would pass the size, but only on a line: small tensors that share one stay together.
void Plan::lay_out(const PlanInput &input) {
  FlatLayout layout;
  for (const int64_t count : input.counts) {
    const int64_t begin = layout.append(count);
    PlannedParam param{{begin, begin + count}, -1, {}};
    if (count > 0) {
      const bool passes = !buckets_.empty() && param.flat.end - buckets_.back().flat.begin > input.bucket_elements;
      if (buckets_.empty() || (passes && begin % kLine == 0)) open_bucket(begin);
      PlannedBucket &bucket = buckets_.back();
      if (begin > bucket.flat.end) bucket.gaps.push_back({bucket.flat.end - bucket.flat.begin, begin - bucket.flat.begin});
      bucket.flat.end = param.flat.end;
      bucket.end_param = static_cast<int64_t>(params_.size()) + 1;
      bucket.element_count += count;
      param.bucket = bucket_count() - 1;
    }
    element_count_ += count;
    largest_param_ = std::max(largest_param_, count);
    params_.push_back(std::move(param));
  }
  extent_ = layout.extent();
}

void Plan::cut_buckets(const PlanInput &input) {
  for (PlannedBucket &bucket : buckets_) {
    for (int64_t rank = 0; rank < input.weights.size(); ++rank) bucket.cuts.push_back(input.weights.shard({0, bucket.flat.count()}, rank));
    bucket.own = bucket.cuts[static_cast<size_t>(input.rank)];
    bucket.shard_begin = shard_extent_;
    shard_extent_ += round_up(bucket.own.count(), kLine);
    largest_bucket_ = std::max(largest_bucket_, bucket.flat.count());
  }
}

void Plan::cut_params(const PlanInput &input) {
  for (size_t id = 0; id < params_.size(); ++id) {
    PlannedParam &param = params_[id];
    if (param.bucket < 0) continue;
    const PlannedBucket &home = bucket(param.bucket);
    const int64_t begin = param.flat.begin - home.flat.begin;
    for (const Range &cut : home.cuts) {
      const Range part = intersect({begin, begin + param.flat.count()}, cut);
      param.cuts.push_back(part.empty() ? Range{} : Range{part.begin - begin, part.end - begin});
    }
    const Range own = param.cuts[static_cast<size_t>(input.rank)];
    if (!own.empty()) views_.push_back({static_cast<int64_t>(id), own.begin, own.count()});
    own_element_count_ += own.count();
  }
}

/// A bucket can be reduced when the last of its tensors is ready.
void Plan::set_order(std::span<const int64_t> order) {
  std::vector<size_t> place(buckets_.size());
  for (size_t position = 0; position < order.size(); ++position) {
    const int64_t home = param(order[position]).bucket;
    if (home >= 0) place[static_cast<size_t>(home)] = position;
  }
  order_.resize(buckets_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto earlier = [&](int64_t a, int64_t b) { return place[static_cast<size_t>(a)] < place[static_cast<size_t>(b)]; };
  std::sort(order_.begin(), order_.end(), earlier);
}

MemoryFormula memory_formula(int64_t stage, int64_t element_count, int64_t own_element_count, int64_t state_count) {
  constexpr int64_t kElementBytes = 4;
  const auto slot = [&](int64_t sharded_from) { return kElementBytes * (stage >= sharded_from ? own_element_count : element_count); };
  return {slot(3), slot(2), slot(1) * state_count};
}

}  // namespace zero
