/// @file Pieces and fingerprints of collectives, and the hash of cuts.
#include "group/collectives/pieces.h"

#include <bit>

namespace zero {

Cuts even_cuts(int64_t count, int64_t size) {
  Cuts cuts(static_cast<size_t>(size));
  for (int64_t rank = 0; rank < size; ++rank) cuts[static_cast<size_t>(rank)] = even_share(count, rank, size);
  return cuts;
}

Fingerprint describe(OperationKind kind, int64_t count, DType dtype) {
  Fingerprint fingerprint;
  fingerprint.kind = kind;
  fingerprint.count = count;
  fingerprint.dtype = static_cast<int32_t>(dtype);
  return fingerprint;
}

uint64_t hash_cuts(const Cuts &cuts, double divisor) {
  // A multiply-and-rotate mix: it must detect accidental differences, not attacks.
  uint64_t hash = std::bit_cast<uint64_t>(divisor);
  const auto mix = [&hash](int64_t value) { hash = std::rotl(hash ^ static_cast<uint64_t>(value), 29) * 0x9e3779b97f4a7c15U; };
  for (const Range &cut : cuts) {
    mix(cut.begin);
    mix(cut.end);
  }
  return hash;
}

}  // namespace zero
