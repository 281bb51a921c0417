/// @file The arithmetic of the plan.
#include "engine/layout/plan.h"

#include <algorithm>
#include <numeric>

namespace zero {

Plan::Plan(const PlanInput &input)
    : weights_(input.weights), rank_(input.rank), block_ranks_(input.param_ranks > 0 ? input.param_ranks : weights_.size()) {
  lay_out(input);
  assign_whole_tensors(input);
  cut_params(input);
  set_order(input);
}

void Plan::lay_out(const PlanInput &input) {
  std::vector<FlatLayout> layouts(input.spaces.size());
  std::vector<int64_t> open_buckets(input.spaces.size(), -1);
  for (size_t id = 0; id < input.tensors.size(); ++id) {
    const TensorShape &tensor = input.tensors[id];
    if (tensor.tied_to >= 0) {
      params_.push_back(param(tensor.tied_to));
      continue;
    }
    const auto space = static_cast<size_t>(tensor.space);
    const bool on_line = input.spaces[space].whole_tensors || tensor.rows > 0;
    const int64_t begin = on_line ? layouts[space].append_line(tensor.count) : layouts[space].append(tensor.count);
    params_.push_back({{begin, begin + tensor.count}, -1, tensor.height});
    element_count_ += tensor.count;
    if (tensor.count > 0) place_tensor(input, static_cast<int64_t>(id), begin, &open_buckets[space]);
  }
}

/// A bucket is closed when the next tensor would pass the size, but only on a line: small tensors
/// that share one stay together.
void Plan::place_tensor(const PlanInput &input, int64_t id, int64_t begin, int64_t *open_bucket) {
  PlannedParam &placed = params_[static_cast<size_t>(id)];
  const int64_t space = input.tensors[static_cast<size_t>(id)].space;
  const SpaceShape &shape = input.spaces[static_cast<size_t>(space)];
  const int64_t rows = input.tensors[static_cast<size_t>(id)].rows;
  const bool passes = *open_bucket >= 0 && placed.flat.end - bucket(*open_bucket).flat.begin > shape.bucket_elements;
  const bool by_rows = rows > 0 || (*open_bucket >= 0 && bucket(*open_bucket).rows.count > 0);
  if (*open_bucket < 0 || ((passes || shape.whole_tensors || by_rows) && begin % kLine == 0)) {
    *open_bucket = bucket_count();
    PlannedBucket next;
    next.space = space;
    next.flat = {begin, begin};
    if (rows > 0) next.rows = {rows, placed.flat.count() / rows};
    buckets_.push_back(std::move(next));
  }
  PlannedBucket &home = buckets_[static_cast<size_t>(*open_bucket)];
  if (begin > home.flat.end) home.gaps.push_back({home.flat.end - home.flat.begin, begin - home.flat.begin});
  home.flat.end = placed.flat.end;
  home.params.push_back(id);
  home.element_count += placed.flat.count();
  placed.bucket = *open_bucket;
}

/// Tensors are assigned from the costliest on, each to the rank with the least work afterwards in
/// proportion to its weight (Graham, "Bounds on multiprocessing timing anomalies", 1969: within 4/3
/// of the best). Ties go to the first rank.
void Plan::assign_whole_tensors(const PlanInput &input) {
  std::vector<int64_t> whole;
  for (int64_t index = 0; index < bucket_count(); ++index) {
    if (input.spaces[static_cast<size_t>(bucket(index).space)].whole_tensors) whole.push_back(index);
  }
  const auto cost = [&](int64_t index) { return input.tensors[static_cast<size_t>(bucket(index).params.front())].cost; };
  std::stable_sort(whole.begin(), whole.end(), [&](int64_t a, int64_t b) { return cost(a) > cost(b); });
  std::vector<double> load(static_cast<size_t>(input.weights.size()));
  for (const int64_t index : whole) {
    int64_t owner = -1;
    double least = 0;
    for (int64_t rank = 0; rank < input.weights.size(); ++rank) {
      if (input.weights.weight(rank) == 0) continue;
      const double then = (load[static_cast<size_t>(rank)] + cost(index)) / static_cast<double>(input.weights.weight(rank));
      if (owner < 0 || then < least) {
        owner = rank;
        least = then;
      }
    }
    load[static_cast<size_t>(owner)] += cost(index);
    buckets_[static_cast<size_t>(index)].whole_owner = owner;
  }
}

void Plan::cut_params(const PlanInput &input) {
  for (int64_t index = 0; index < bucket_count(); ++index) {
    PlannedBucket &home = buckets_[static_cast<size_t>(index)];
    home.own = bucket_cut(index, input.rank);
    for (const int64_t id : home.params) {
      const Range own = own_param_cut(id);
      if (own.empty()) continue;
      views_.push_back({id, own.begin, own.count()});
      home.own_element_count += own.count();
    }
    own_element_count_ += home.own_element_count;
  }
}

Range Plan::part_of(int64_t id, Range in_bucket) const {
  const PlannedParam &placed = param(id);
  const int64_t begin = placed.flat.begin - bucket(placed.bucket).flat.begin;
  const Range part = intersect({begin, begin + placed.flat.count()}, in_bucket);
  return part.empty() ? Range{} : Range{part.begin - begin, part.end - begin};
}

Range Plan::bucket_cut(int64_t index, int64_t rank) const {
  const PlannedBucket &home = bucket(index);
  const int64_t end = home.flat.count();
  if (home.whole_owner < 0) return weights_.shard({0, end}, rank);
  return rank < home.whole_owner ? Range{0, 0} : rank == home.whole_owner ? Range{0, end} : Range{end, end};
}

Cuts Plan::bucket_cuts(int64_t index) const {
  Cuts cuts(static_cast<size_t>(rank_count()));
  for (int64_t rank = 0; rank < rank_count(); ++rank) cuts[static_cast<size_t>(rank)] = bucket_cut(index, rank);
  return cuts;
}

bool Plan::any_rows() const {
  return std::any_of(buckets_.begin(), buckets_.end(), [](const PlannedBucket &bucket) { return bucket.rows.count > 0; });
}

std::vector<uint8_t> Plan::shared_lines(int64_t index, bool unfilled) const {
  const PlannedBucket &home = bucket(index);
  std::vector<uint8_t> shared(static_cast<size_t>(round_up(home.flat.count(), kLine) / kLine));
  for (const int64_t id : home.params) {
    const Range flat = param(id).flat;
    if (flat.count() < kLine) shared[static_cast<size_t>((flat.begin - home.flat.begin) / kLine)] = 1;
  }
  if (!unfilled) return shared;
  for (const Range &gap : home.gaps) {
    for (int64_t line = gap.begin / kLine; line * kLine < gap.end; ++line) shared[static_cast<size_t>(line)] = 1;
  }
  if (home.flat.count() % kLine != 0) shared.back() = 1;
  return shared;
}

Range Plan::param_cut(int64_t id, int64_t rank) const {
  const int64_t home = param(id).bucket;
  return home < 0 ? Range{} : part_of(id, bucket_cut(home, rank));
}

Range Plan::own_param_cut(int64_t id) const {
  const int64_t home = param(id).bucket;
  return home < 0 ? Range{} : part_of(id, bucket(home).own);
}

Cuts Plan::param_cuts(int64_t id) const {
  Cuts cuts(static_cast<size_t>(rank_count()));
  for (int64_t rank = 0; rank < rank_count(); ++rank) cuts[static_cast<size_t>(rank)] = param_cut(id, rank);
  return cuts;
}

Cuts Plan::held_cuts(int64_t index) const {
  Cuts cuts(static_cast<size_t>(block_count()));
  int64_t end = 0;
  for (int64_t block = 0; block < block_count(); ++block) {
    const int64_t begin = end;
    end += bucket_cut(index, twin(block)).count();
    cuts[static_cast<size_t>(block)] = {begin, end};
  }
  return cuts;
}

Cuts Plan::param_cuts(int64_t id, int64_t block) const {
  Cuts cuts(static_cast<size_t>(block_ranks_));
  for (int64_t place = 0; place < block_ranks_; ++place) cuts[static_cast<size_t>(place)] = param_cut(id, block * block_ranks_ + place);
  return cuts;
}

/// A bucket can be reduced when the last of its tensors is ready.
void Plan::set_order(const PlanInput &input) {
  std::vector<size_t> place(buckets_.size());
  for (size_t position = 0; position < input.order.size(); ++position) {
    const int64_t home = param(input.order[position]).bucket;
    if (home >= 0) place[static_cast<size_t>(home)] = position;
  }
  for (int64_t index = 0; index < bucket_count(); ++index) {
    if (input.spaces[static_cast<size_t>(bucket(index).space)].trains) order_.push_back(index);
  }
  const auto earlier = [&](int64_t a, int64_t b) { return place[static_cast<size_t>(a)] < place[static_cast<size_t>(b)]; };
  std::sort(order_.begin(), order_.end(), earlier);
  count_held(input, place);
}

/// `last[bucket]` is the position of the bucket's last gradient in the order.
void Plan::count_held(const PlanInput &input, std::span<const size_t> last) {
  std::vector<bool> open(buckets_.size());
  int64_t count = 0;
  int64_t most = 2;
  for (size_t position = 0; position < input.order.size(); ++position) {
    const int64_t home = param(input.order[position]).bucket;
    if (home < 0 || !input.spaces[static_cast<size_t>(bucket(home).space)].trains) continue;
    const auto index = static_cast<size_t>(home);
    if (!open[index]) ++count;
    open[index] = true;
    most = std::max(most, count);
    if (last[index] == position) --count;
  }
  held_bucket_count_ = std::min(most, static_cast<int64_t>(order_.size()));
}

}  // namespace zero
