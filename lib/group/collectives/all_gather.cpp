/// @file All-gather by direct exchange: each rank offers its part to all others, which copy it into
/// place. Rank r sends (N - 1) * count_r elements.
#include "group/collectives/pieces.h"

namespace zero {

Task all_gather_rounds(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype) {
  if (pays_by_hosts(group, cuts, dtype)) co_return co_await all_gather_by_hosts(group, mine, whole, cuts, dtype);
  const int64_t element = dtype_nbytes(dtype);
  const int64_t nbytes = whole_count(cuts) * element;
  const int64_t step = chunk_elements(group, element, 1);
  const Range own = cuts[static_cast<size_t>(group.rank())];
  Pieces pieces(group.size());
  const int64_t end = longest(cuts);
  int64_t begin = 0;
  do {
    const Range offered = chunk_of(own, begin, step);
    for (int64_t peer = 0; peer < group.size(); ++peer) {
      const Range cut = cuts[static_cast<size_t>(peer)];
      const Range part = chunk_of(cut, begin, step);
      pieces.offers[static_cast<size_t>(peer)] = {at(mine, offered.begin - own.begin, element), offered.count() * element,
                                                  (own.end - offered.end) * element};
      pieces.arrivals[static_cast<size_t>(peer)] = {nullptr, part.count() * element, (cut.end - part.end) * element,
                                                    at(whole, part.begin, element)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    const int64_t taken = round.rest_is_there() ? end - begin : step;
    for (int64_t peer = 0; peer < group.size(); ++peer) {
      const Range part = chunk_of(cuts[static_cast<size_t>(peer)], begin, taken);
      if (peer != group.rank()) take(group, pieces.arrivals[static_cast<size_t>(peer)], part.count() * element, nbytes);
    }
    begin += taken;
  } while (begin < end);
  void *own_place = at(whole, own.begin, element);
  if (own_place != mine) group.reducer()->copy(own_place, mine, own.count() * element, nbytes);
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

Task all_gather(Group &group, const void *mine, void *whole, const Cuts &cuts, DType dtype, uint64_t what) {
  Fingerprint fingerprint = describe(OperationKind::all_gather, whole_count(cuts), dtype);
  fingerprint.detail = hash_cuts(cuts, 1) + what;
  return group.collective(fingerprint, all_gather_rounds(group, mine, whole, cuts, dtype));
}

}  // namespace zero
