/// @file NeighbourMean: the mean of fp32 values over a rank and the ranks next to it in a ring.
/// Knows ranks; never what the values are.
#pragma once

#include "core/task.h"
#include "group/collectives.h"
#include "group/group.h"
#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

/// The weights of all ranks form a symmetric, doubly stochastic matrix: 1/3 for a rank and its two
/// neighbours, 1/2 in a ring of two. The mean of all ranks stays the same, to rounding. One call at
/// a time.
class NeighbourMean {
 public:
  /// The number of neighbours of one rank in a ring of `ranks`.
  static int64_t neighbours(int64_t ranks) { return ranks < 3 ? ranks - 1 : 2; }
  /// Bytes that open() takes, for values of at most `count` elements at a time.
  static int64_t nbytes(int64_t count, int64_t ranks);
  Status open(int64_t count, const Group &group, const MemorySource &source);
  void close();

  /// values = their sum over this rank and its neighbours, in the order of ranks, divided by the
  /// number of these. A collective over all ranks, each with equally many values.
  Task run(Group &group, float *values, int64_t count);

 private:
  Task run_piece(Group &group, float *values, int64_t count);

  Arena memory_;
  std::vector<int64_t> ring_;  ///< this rank and its neighbours, in rising order
  std::vector<Offer> offers_;
  std::vector<Receive> receives_;
};

}  // namespace zero
