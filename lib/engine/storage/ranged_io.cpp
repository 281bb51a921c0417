/// @file Ranks exchange their ranges. Then each pair of ranks exchanges the elements in which a
/// range of one overlaps the shard of the other.
#include "engine/storage/ranged_io.h"

#include "group/collectives/agreement.h"

#include <algorithm>
#include <vector>

namespace zero {
namespace {

const std::byte *at(const void *base, int64_t index, DType dtype) {
  return base == nullptr ? nullptr : static_cast<const std::byte *>(base) + index * dtype_nbytes(dtype);
}
std::byte *at(void *base, int64_t index, DType dtype) { return const_cast<std::byte *>(at(static_cast<const void *>(base), index, dtype)); }

Task tell_ranges(Group &group, const CutWhole &whole, Range mine, std::vector<Range> *out) {
  const int64_t words[2] = {mine.begin, mine.end};
  std::vector<int64_t> all(static_cast<size_t>(group.size()) * 2);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.dtype = static_cast<int32_t>(whole.dtype);
  fingerprint.detail = whole.detail;
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, words, all));
  for (size_t i = 0; i < all.size(); i += 2) out->push_back({all[i], all[i + 1]});
  co_return Status();
}

bool any_overlap(std::vector<Range> ranges) {
  std::erase_if(ranges, [](Range range) { return range.empty(); });
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) return true;
  }
  return false;
}

/// One exchange in which the writers [first, last) send.
Task write_from(Group &group, const CutWhole &whole, const std::vector<Range> &ranges, const void *data, size_t first, size_t last) {
  const auto self = static_cast<size_t>(group.rank());
  const int64_t element = dtype_nbytes(whole.dtype);
  std::vector<Offer> offers(ranges.size());
  std::vector<Receive> receives(ranges.size());
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const Range sent = intersect(ranges[self], (*whole.cuts)[rank]);
    if (self >= first && self < last && !sent.empty()) {
      offers[rank] = {at(data, sent.begin - ranges[self].begin, whole.dtype), sent.count() * element};
    }
    const Range own = (*whole.cuts)[self];
    const Range received = intersect(ranges[rank], own);
    if (rank >= first && rank < last && !received.empty()) {
      receives[rank] = {at(whole.own, received.begin - own.begin, whole.dtype), received.count() * element};
    }
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives));
  co_return Status();
}

}  // namespace

Task read_range(Group &group, CutWhole whole, Range range, void *data) {
  std::vector<Range> ranges;
  ZERO_CO_AWAIT(tell_ranges(group, whole, range, &ranges));
  const auto self = static_cast<size_t>(group.rank());
  const int64_t element = dtype_nbytes(whole.dtype);
  const Range own = (*whole.cuts)[self];
  std::vector<Offer> offers(ranges.size());
  std::vector<Receive> receives(ranges.size());
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const Range sent = intersect(ranges[rank], own);
    if (!sent.empty()) offers[rank] = {at(whole.own, sent.begin - own.begin, whole.dtype), sent.count() * element};
    const Range received = intersect(range, (*whole.cuts)[rank]);
    if (!received.empty()) receives[rank] = {at(data, received.begin - range.begin, whole.dtype), received.count() * element};
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives));
  co_return Status();
}

Task write_range(Group &group, CutWhole whole, Range range, const void *data, bool *out_any) {
  std::vector<Range> ranges;
  ZERO_CO_AWAIT(tell_ranges(group, whole, range, &ranges));
  if (out_any != nullptr) *out_any = std::any_of(ranges.begin(), ranges.end(), [](Range each) { return !each.empty(); });
  if (!any_overlap(ranges)) {
    ZERO_CO_AWAIT(write_from(group, whole, ranges, data, 0, ranges.size()));
    co_return Status();
  }
  for (size_t rank = 0; rank < ranges.size(); ++rank) ZERO_CO_AWAIT(write_from(group, whole, ranges, data, rank, rank + 1));
  co_return Status();
}

}  // namespace zero
