/// @file Exchanges pieces between all pairs of ranks; all_to_all has pieces of equal size.
#include "group/collectives/pieces.h"

#include <cstring>

namespace zero {
namespace {

Range bytes_of(int64_t nbytes) { return {0, nbytes}; }

/// Only the two ranks of a piece know its length, so a first round agrees on the number of rounds.
Task exchange_rounds(Group &group, std::span<const Offer> offers, std::span<const Receive> receives) {
  const auto own = static_cast<size_t>(group.rank());
  const int64_t step = chunk_elements(group, 1, group.size() - 1);
  int64_t most = 0;
  for (size_t peer = 0; peer < offers.size(); ++peer) {
    if (peer != own) most = std::max({most, offers[peer].nbytes, receives[peer].nbytes});
  }
  Pieces pieces(group.size());
  for (Offer &offer : pieces.offers) offer = {&most, sizeof most};
  for (Arrival &arrival : pieces.arrivals) arrival.nbytes = sizeof most;
  int64_t agreed = most;
  {
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    for (size_t peer = 0; peer < offers.size(); ++peer) {
      int64_t theirs = 0;
      if (peer != own) std::memcpy(&theirs, pieces.arrivals[peer].data, sizeof theirs);
      agreed = std::max(agreed, theirs);
    }
  }
  for (int64_t begin = 0; begin < agreed; begin += step) {
    for (size_t peer = 0; peer < offers.size(); ++peer) {
      const Range offered = chunk_of(bytes_of(offers[peer].nbytes), begin, step);
      pieces.offers[peer] = {at(offers[peer].data, offered.begin, 1), offered.count()};
      const Range received = chunk_of(bytes_of(receives[peer].nbytes), begin, step);
      pieces.arrivals[peer] = {.nbytes = received.count(), .place = at(receives[peer].data, received.begin, 1)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    for (size_t peer = 0; peer < offers.size(); ++peer) {
      const Range part = chunk_of(bytes_of(receives[peer].nbytes), begin, step);
      if (peer != own) take(group, pieces.arrivals[peer], part.count(), receives[peer].nbytes);
    }
  }
  if (receives[own].nbytes > 0) group.reducer()->copy(receives[own].data, offers[own].data, receives[own].nbytes, receives[own].nbytes);
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

Task all_to_all_rounds(Group &group, const void *send, void *recv, int64_t count, DType dtype) {
  const int64_t element = dtype_nbytes(dtype);
  const int64_t block = count / group.size();
  const int64_t step = chunk_elements(group, element, group.size() - 1);
  const auto own = static_cast<size_t>(group.rank());
  Pieces pieces(group.size());
  int64_t begin = 0;
  do {
    const Range part = chunk_of({0, block}, begin, step);
    for (size_t peer = 0; peer < pieces.offers.size(); ++peer) {
      pieces.offers[peer] = {at(send, static_cast<int64_t>(peer) * block + part.begin, element), part.count() * element};
      pieces.arrivals[peer] = {.nbytes = part.count() * element,
                               .place = at(recv, static_cast<int64_t>(peer) * block + part.begin, element)};
    }
    Round round(group, pieces.offers, pieces.arrivals);
    ZERO_CO_AWAIT(round);
    for (size_t peer = 0; peer < pieces.offers.size(); ++peer) {
      if (peer != own) take(group, pieces.arrivals[peer], part.count() * element, count * element);
    }
    begin += step;
  } while (begin < block);
  if (block > 0) {
    group.reducer()->copy(at(recv, group.rank() * block, element), at(send, group.rank() * block, element), block * element,
                          count * element);
  }
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

}  // namespace

Task exchange(Group &group, std::span<const Offer> offers, std::span<const Receive> receives, uint64_t what) {
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.detail = what;
  return group.collective(fingerprint, exchange_rounds(group, offers, receives));
}

Task all_to_all(Group &group, const void *send, void *recv, int64_t count, DType dtype) {
  return group.collective(describe(OperationKind::all_to_all, count, dtype), all_to_all_rounds(group, send, recv, count, dtype));
}

}  // namespace zero
