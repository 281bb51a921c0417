/// @file The cut of a model into fragments, and the parts of each on this rank.
#include "engine/replicas/fragments.h"

#include <algorithm>
#include <utility>

namespace zero {
namespace {

void add_parts(int64_t bucket, Range range, std::vector<FragmentPart> &parts) {
  while (!range.empty()) {
    const bool on_line = range.begin % kLine == 0;
    const int64_t end = std::min(range.end, on_line ? range.begin + kMostPartElements : round_up(range.begin, kLine));
    parts.push_back({bucket, {range.begin, end}});
    range.begin = end;
  }
}

/// Ids in order of registration.
std::vector<int64_t> trained_tensors(const Plan &plan) {
  std::vector<int64_t> ids;
  for (const int64_t index : plan.order()) ids.insert(ids.end(), plan.bucket(index).params.begin(), plan.bucket(index).params.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// By id: the number of its fragment. A run goes on while its aim lies behind the middle of the
/// next tensor.
std::vector<size_t> cut(const Plan &plan, const std::vector<int64_t> &ids, int64_t count) {
  const auto elements = [&plan](int64_t id) { return plan.param(id).flat.count(); };
  int64_t total = 0;
  for (const int64_t id : ids) total += elements(id);
  std::vector<size_t> numbers(plan.params().size());
  auto next = ids.begin();
  int64_t sum = 0;
  for (int64_t number = 0; number < count; ++number) {
    const int64_t twice = scale_floor(2 * total, number + 1, count);
    const auto last = ids.end() - (count - 1 - number);
    do {
      sum += elements(*next);
      numbers[static_cast<size_t>(*next++)] = static_cast<size_t>(number);
    } while (next < last && (number + 1 == count || 2 * sum + elements(*next) <= twice));
  }
  return numbers;
}

/// Neighbours in a bucket that belong to one fragment are worked on together.
void add_runs(const Plan &plan, int64_t index, bool all, const std::vector<size_t> &numbers, std::vector<Fragment> *out) {
  const PlannedBucket &bucket = plan.bucket(index);
  const auto number_of = [&](size_t at) { return numbers[static_cast<size_t>(bucket.params[at])]; };
  Range run{0, 0};
  for (size_t at = 0; at < bucket.params.size(); ++at) {
    const Range flat = plan.param(bucket.params[at]).flat;
    if (at == 0 || number_of(at) != number_of(at - 1)) run.begin = flat.begin - bucket.flat.begin;
    run.end = flat.end - bucket.flat.begin;
    if (at + 1 == bucket.params.size() || number_of(at + 1) != number_of(at))
      add_parts(index, intersect(run, updated_range(bucket, all)), (*out)[number_of(at)].parts);
  }
}

}  // namespace

Fragment whole_fragment(const Plan &plan, bool all) {
  Fragment whole;
  whole.params = trained_tensors(plan);
  for (const int64_t index : plan.order()) add_parts(index, updated_range(plan.bucket(index), all), whole.parts);
  for (const int64_t id : whole.params) whole.element_count += plan.param(id).flat.count();
  return whole;
}

Status cut_into_fragments(const Plan &plan, bool all, int64_t count, std::vector<Fragment> *out) {
  const std::vector<int64_t> ids = trained_tensors(plan);
  const int64_t most = std::max<int64_t>(std::ssize(ids), 1);
  ZERO_CHECK(count <= most, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_SYNC_FRAGMENTS is %lld, but only %lld tensors train, and a fragment has at least one; set it to %lld at most",
             lld(count), lld(std::ssize(ids)), lld(most));
  out->assign(static_cast<size_t>(count), {});
  if (ids.empty()) return {};
  const std::vector<size_t> numbers = cut(plan, ids, count);
  for (const int64_t id : ids) {
    Fragment &fragment = (*out)[numbers[static_cast<size_t>(id)]];
    fragment.params.push_back(id);
    fragment.element_count += plan.param(id).flat.count();
  }
  for (const int64_t index : plan.order()) add_runs(plan, index, all, numbers, out);
  return {};
}

}  // namespace zero
