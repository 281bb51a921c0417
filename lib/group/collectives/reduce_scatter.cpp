/// @file Reduce-scatter by direct exchange: each rank sends every owner its part, and the owner
/// sums all parts in one pass of the fixed tree. Rank r sends count - count_r elements, which is
/// the least possible. Also all_reduce and reduce, which are made of the same step; little data is
/// all-reduced in one round, where a second one would cost more than the elements that are sent on
/// top.
#include "group/collectives.h"

#include "group/collectives/pieces.h"

#include <algorithm>
#include <array>

namespace zero {
namespace {

/// Sums one arrived chunk of every rank into out.
bool sum_chunk(const Group &group, std::span<const Arrival> arrivals, const void *own, std::span<const void *> sources, void *out,
               int64_t count, DType dtype, ReduceOp op, double divisor, int64_t total_nbytes, DType out_dtype = DType{},
               const float *weights = nullptr) {
  for (size_t rank = 0; rank < sources.size(); ++rank) sources[rank] = arrivals[rank].data;
  sources[static_cast<size_t>(group.rank())] = own;
  return group.reducer()->reduce({out, sources.data(), group.size(), count, dtype, op, divisor, out_dtype, total_nbytes, weights});
}

bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8; }

/// The average of integers divides one sum in 64 bits, which parts of it do not hold.
bool sums_in_parts(const ReduceScatter &call) { return !is_integer(call.dtype) || call.op != ReduceOp::avg; }

Task reduce_scatter_rounds(Group &group, ReduceScatter call) {
  const Cuts &cuts = *call.cuts;
  if (sums_in_parts(call) && pays_by_hosts(group, cuts, call.dtype)) co_return co_await reduce_scatter_by_hosts(group, call);
  const int64_t element = dtype_nbytes(call.dtype);
  const int64_t out_element = call.out_dtype == DType{} ? element : dtype_nbytes(call.out_dtype);
  const int64_t step = chunk_elements(group, element, group.size() - 1);
  const Range mine = cuts[static_cast<size_t>(group.rank())];
  Pieces pieces(group.size());
  bool finite = true;
  const int64_t end = longest(cuts);
  int64_t begin = 0;
  do {
    for (int64_t peer = 0; peer < group.size(); ++peer) {
      const Range cut = cuts[static_cast<size_t>(peer)];
      const Range part = chunk_of(cut, begin, step);
      pieces.offers[static_cast<size_t>(peer)] = {at(call.whole, part.begin, element), part.count() * element,
                                                  (cut.end - part.end) * element};
    }
    const Range first = chunk_of(mine, begin, step);
    for (Arrival &arrival : pieces.arrivals) {
      arrival.nbytes = first.count() * element;
      arrival.rest_nbytes = (mine.end - first.end) * element;
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    const int64_t taken = round.rest_is_there() ? end - begin : step;
    const Range part = chunk_of(mine, begin, taken);
    if (!part.empty()) {
      finite &= sum_chunk(group, pieces.arrivals, at(call.whole, part.begin, element), pieces.sources,
                          at(call.out, part.begin - mine.begin, out_element), part.count(), call.dtype, call.op, call.divisor,
                          mine.count() * out_element, call.out_dtype, call.weights);
    }
    begin += taken;
  } while (begin < end);
  if (call.out_finite != nullptr && !finite) *call.out_finite = false;
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

double divisor_of(const Group &group, ReduceOp op) { return op == ReduceOp::avg ? static_cast<double>(group.size()) : 1.0; }

constexpr int64_t kAtOnceNbytes = 1024;      ///< per contribution
constexpr int64_t kAtOnceSentNbytes = 4096;  ///< per rank

bool fits_at_once(Group &group, int64_t nbytes) {
  const int64_t most = std::min(kAtOnceNbytes, group.transport().capabilities().round_nbytes);
  return nbytes <= most && (group.size() - 1) * nbytes <= kAtOnceSentNbytes;
}

/// Each rank sends its contribution to all others, and every rank sums all of them. Memory that
/// peers may still read in place is written last.
Task all_reduce_at_once(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op) {
  const int64_t nbytes = count * dtype_nbytes(dtype);
  alignas(16) std::array<std::byte, kAtOnceNbytes> sum;  // as the memory of a coroutine is
  Pieces pieces(group.size());
  std::fill(pieces.offers.begin(), pieces.offers.end(), Offer{send, nbytes});
  for (Arrival &arrival : pieces.arrivals) arrival.nbytes = nbytes;
  {
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    if (count > 0) sum_chunk(group, pieces.arrivals, send, pieces.sources, sum.data(), count, dtype, op, divisor_of(group, op), nbytes);
  }
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  if (count == 0) co_return Status();
  group.reducer()->copy(recv, sum.data(), nbytes, nbytes);
  co_return group.reducer()->settle();
}

Task all_reduce_rounds(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op) {
  if (fits_at_once(group, count * dtype_nbytes(dtype))) co_return co_await all_reduce_at_once(group, send, recv, count, dtype, op);
  const Cuts cuts = even_cuts(count, group.size());
  const Range mine = cuts[static_cast<size_t>(group.rank())];
  void *own = at(recv, mine.begin, dtype_nbytes(dtype));
  ZERO_CO_AWAIT(reduce_scatter_rounds(group, {send, own, &cuts, dtype, op, divisor_of(group, op)}));
  ZERO_CO_AWAIT(all_gather_rounds(group, own, recv, cuts, dtype));
  co_return Status();
}

Task reduce_rounds(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op, int64_t root) {
  const int64_t element = dtype_nbytes(dtype);
  const int64_t step = chunk_elements(group, element, 1);
  const bool is_root = group.rank() == root;
  Pieces pieces(group.size());
  int64_t begin = 0;
  do {
    const Range part = chunk_of({0, count}, begin, step);
    if (is_root) {
      for (Arrival &arrival : pieces.arrivals) arrival.nbytes = part.count() * element;
    } else {
      pieces.offers[static_cast<size_t>(root)] = {at(send, part.begin, element), part.count() * element};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    if (is_root && !part.empty()) {
      sum_chunk(group, pieces.arrivals, at(send, part.begin, element), pieces.sources, at(recv, part.begin, element), part.count(), dtype,
                op, divisor_of(group, op), count * element);
    }
    begin += step;
  } while (begin < count);
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

}  // namespace

Task reduce_scatter(Group &group, ReduceScatter call) {
  Fingerprint fingerprint = describe(OperationKind::reduce_scatter, whole_count(*call.cuts), call.dtype);
  fingerprint.op = static_cast<int32_t>(call.op);
  if (call.op == ReduceOp::avg) call.divisor = divisor_of(group, call.op);
  fingerprint.detail = hash_cuts(*call.cuts, call.divisor) + call.what;
  return group.collective(fingerprint, reduce_scatter_rounds(group, call));
}

Task all_reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op) {
  Fingerprint fingerprint = describe(OperationKind::all_reduce, count, dtype);
  fingerprint.op = static_cast<int32_t>(op);
  return group.collective(fingerprint, all_reduce_rounds(group, send, recv, count, dtype, op));
}

Task reduce(Group &group, const void *send, void *recv, int64_t count, DType dtype, ReduceOp op, int64_t root) {
  Fingerprint fingerprint = describe(OperationKind::reduce, count, dtype);
  fingerprint.op = static_cast<int32_t>(op);
  fingerprint.root = root;
  return group.collective(fingerprint, reduce_rounds(group, send, recv, count, dtype, op, root));
}

}  // namespace zero
