/// @file Collectives with a root that move data without sums: broadcast, gather, scatter. Also
/// barrier and around, which move no data.
#include "group/collectives/pieces.h"

namespace zero {
namespace {

Task barrier_round(Group &group) {
  Pieces pieces(group.size());
  Round round(group, pieces.offers, pieces.arrivals);
  ZERO_CO_AWAIT(round);
  co_return Status();
}

Task round_around(Group &group, Task meanwhile) {
  Pieces pieces(group.size());
  Round round(group, pieces.offers, pieces.arrivals);
  ZERO_CO_TRY(round.start());
  ZERO_CO_AWAIT(meanwhile);
  ZERO_CO_AWAIT(round);
  co_return Status();
}

Task broadcast_rounds(Group &group, void *data, int64_t count, int64_t element, int64_t root) {
  const int64_t step = chunk_elements(group, element, 1);
  const bool is_root = group.rank() == root;
  Pieces pieces(group.size());
  int64_t begin = 0;
  do {
    const Range part = chunk_of({0, count}, begin, step);
    if (is_root) {
      for (Offer &offer : pieces.offers) offer = {at(data, part.begin, element), part.count() * element};
    } else {
      pieces.arrivals[static_cast<size_t>(root)] = {.nbytes = part.count() * element, .place = at(data, part.begin, element)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    if (!is_root) take(group, pieces.arrivals[static_cast<size_t>(root)], part.count() * element, count * element);
    begin += step;
  } while (begin < count);
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

Task gather_rounds(Group &group, const void *send, void *recv, int64_t total, int64_t element, int64_t root) {
  const Cuts cuts = even_cuts(total, group.size());
  const Range own = cuts[static_cast<size_t>(group.rank())];
  const int64_t step = chunk_elements(group, element, 1);
  const bool is_root = group.rank() == root;
  Pieces pieces(group.size());
  int64_t begin = 0;
  do {
    const Range offered = chunk_of(own, begin, step);
    if (!is_root) {
      pieces.offers[static_cast<size_t>(root)] = {at(send, offered.begin - own.begin, element), offered.count() * element};
    }
    for (int64_t peer = 0; is_root && peer < group.size(); ++peer) {
      const Range part = chunk_of(cuts[static_cast<size_t>(peer)], begin, step);
      pieces.arrivals[static_cast<size_t>(peer)] = {.nbytes = part.count() * element, .place = at(recv, part.begin, element)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    for (int64_t peer = 0; is_root && peer < group.size(); ++peer) {
      const Range part = chunk_of(cuts[static_cast<size_t>(peer)], begin, step);
      if (peer != root) take(group, pieces.arrivals[static_cast<size_t>(peer)], part.count() * element, total * element);
    }
    begin += step;
  } while (begin < longest(cuts));
  if (is_root && !own.empty() && at(recv, own.begin, element) != send) {
    group.reducer()->copy(at(recv, own.begin, element), send, own.count() * element, total * element);
  }
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

Task scatter_rounds(Group &group, const void *send, void *recv, int64_t total, int64_t element, int64_t root) {
  const Cuts cuts = even_cuts(total, group.size());
  const Range own = cuts[static_cast<size_t>(group.rank())];
  const int64_t step = chunk_elements(group, element, group.size() - 1);
  const bool is_root = group.rank() == root;
  Pieces pieces(group.size());
  int64_t begin = 0;
  do {
    const Range part = chunk_of(own, begin, step);
    for (int64_t peer = 0; is_root && peer < group.size(); ++peer) {
      const Range offered = chunk_of(cuts[static_cast<size_t>(peer)], begin, step);
      pieces.offers[static_cast<size_t>(peer)] = {at(send, offered.begin, element), offered.count() * element};
    }
    if (!is_root) {
      pieces.arrivals[static_cast<size_t>(root)] = {.nbytes = part.count() * element, .place = at(recv, part.begin - own.begin, element)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    if (!is_root) take(group, pieces.arrivals[static_cast<size_t>(root)], part.count() * element, own.count() * element);
    begin += step;
  } while (begin < longest(cuts));
  if (is_root && !own.empty() && at(send, own.begin, element) != recv) {
    group.reducer()->copy(recv, at(send, own.begin, element), own.count() * element, own.count() * element);
  }
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

Fingerprint rooted(OperationKind kind, int64_t count, DType dtype, int64_t root) {
  Fingerprint fingerprint = describe(kind, count, dtype);
  fingerprint.root = root;
  return fingerprint;
}

}  // namespace

Task barrier(Group &group) {
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::barrier;
  return group.collective(fingerprint, barrier_round(group));
}

Task around(Group &group, Task meanwhile, uint64_t what) {
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::call;
  fingerprint.detail = what;
  return group.collective(fingerprint, round_around(group, std::move(meanwhile)));
}

Task broadcast(Group &group, void *data, int64_t count, DType dtype, int64_t root) {
  return group.collective(rooted(OperationKind::broadcast, count, dtype, root),
                          broadcast_rounds(group, data, count, dtype_nbytes(dtype), root));
}

Task gather(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root) {
  return group.collective(rooted(OperationKind::gather, total, dtype, root),
                          gather_rounds(group, send, recv, total, dtype_nbytes(dtype), root));
}

Task scatter(Group &group, const void *send, void *recv, int64_t total, DType dtype, int64_t root) {
  return group.collective(rooted(OperationKind::scatter, total, dtype, root),
                          scatter_rounds(group, send, recv, total, dtype_nbytes(dtype), root));
}

}  // namespace zero
