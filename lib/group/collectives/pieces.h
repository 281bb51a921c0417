/// @file Pieces: chunk arithmetic and the tables of one round, shared by the algorithms. Not for
/// use outside this folder.
#pragma once

#include "group/collectives.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace zero {

inline const void *at(const void *base, int64_t index, int64_t element_nbytes) {
  return base == nullptr ? nullptr : static_cast<const std::byte *>(base) + index * element_nbytes;
}
inline void *at(void *base, int64_t index, int64_t element_nbytes) {
  return base == nullptr ? nullptr : static_cast<std::byte *>(base) + index * element_nbytes;
}

/// Elements of [whole.begin + begin, + step) that are in whole.
inline Range chunk_of(Range whole, int64_t begin, int64_t step) {
  const int64_t first = std::min(whole.begin + begin, whole.end);
  return {first, std::min(first + step, whole.end)};
}

/// Elements per round when a rank offers `distinct` different pieces: as many as the transport
/// stages, cut on lines where possible.
inline int64_t chunk_elements(Group &group, int64_t element_nbytes, int64_t distinct) {
  const int64_t most = group.transport().capabilities().round_nbytes / std::max<int64_t>(distinct, 1) / element_nbytes;
  return most >= kLine ? most / kLine * kLine : std::max<int64_t>(most, 1);
}

inline int64_t longest(const Cuts &cuts) {
  int64_t count = 0;
  for (const Range &cut : cuts) count = std::max(count, cut.count());
  return count;
}

inline int64_t whole_count(const Cuts &cuts) {
  int64_t count = 0;
  for (const Range &cut : cuts) count += cut.count();
  return count;
}

/// The tables of one round.
struct Pieces {
  explicit Pieces(int64_t size)
      : offers(static_cast<size_t>(size)), arrivals(static_cast<size_t>(size)), sources(static_cast<size_t>(size)) {}
  std::vector<Offer, CachedAllocator<Offer>> offers;
  std::vector<Arrival, CachedAllocator<Arrival>> arrivals;
  std::vector<const void *, CachedAllocator<const void *>> sources;
};

/// Brings what arrived to its place, unless it is there.
inline void take(const Group &group, const Arrival &arrival, int64_t nbytes, int64_t total_nbytes) {
  if (nbytes > 0 && arrival.data != arrival.place) group.reducer()->copy(arrival.place, arrival.data, nbytes, total_nbytes);
}

Fingerprint describe(OperationKind kind, int64_t count, DType dtype);
uint64_t hash_cuts(const Cuts &cuts, double divisor);

/// True when a group spans hosts and there is enough data for ranks of one host to sum, or pass on,
/// among themselves first.
bool pays_by_hosts(const Group &group, const Cuts &cuts, DType dtype);
/// Not for averages of integers.
Task reduce_scatter_by_hosts(Group &group, ReduceScatter call);
Task all_gather_by_hosts(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype);

/// The rounds of an all-gather, also the second half of all_reduce.
Task all_gather_rounds(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype);

}  // namespace zero
