/// @file Reading and writing ranges of a sharded array, whichever ranks own them. Knows cuts and
/// collectives; never the meaning of the array.
#pragma once

#include "group/collectives.h"

#include <cstdint>

namespace zero {

/// An array that is sharded over the ranks of a group.
struct CutWhole {
  const Cuts *cuts;  ///< the range of each rank, the same list on all ranks
  std::byte *own;    ///< this rank's shard
  DType dtype;
  uint64_t detail;  ///< hash that identifies the array, compared on all ranks
};

/// Collectives. Each rank passes its own range of the array, which may be empty.
Task read_range(Group &group, CutWhole whole, Range range, void *data);
/// If ranges overlap, the values of the highest rank remain. *out_any, unless nullptr, is true if
/// any rank wrote elements.
Task write_range(Group &group, CutWhole whole, Range range, const void *data, bool *out_any = nullptr);

}  // namespace zero
