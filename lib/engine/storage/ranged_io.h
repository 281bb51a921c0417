/// @file Reading and writing ranges of something that is cut over ranks, whoever owns them. Knows cuts and collectives; never what is cut.
#pragma once

#include "group/collectives.h"

#include <cstdint>

namespace zero {

/// A whole that is cut over the ranks of a group.
struct CutWhole {
  const Cuts *cuts;  ///< of the whole, the same on all ranks
  std::byte *own;    ///< this rank's cut
  DType dtype;
  uint64_t detail;  ///< hash of which whole it is, compared on all ranks
};

/// Collectives in which each rank names its own range of the whole, which may be empty.
Task read_range(Group &group, CutWhole whole, Range range, void *data);
/// Where ranges overlap the highest rank's values stay. *out_any, unless nullptr: whether any rank wrote something.
Task write_range(Group &group, CutWhole whole, Range range, const void *data, bool *out_any = nullptr);

}  // namespace zero
