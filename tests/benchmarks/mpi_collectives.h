/// @file MpiCollectives: MPI's own collectives of fp32, to stand beside the library's in the same processes. Knows nothing of libzero.
#pragma once

#include "collective_cases.h"

#include <cstdint>

namespace zero::bench {

class MpiCollectives {
 public:
  /// Initialises MPI for one thread, with which it is fastest, and finalises it at the end.
  MpiCollectives();
  MpiCollectives(const MpiCollectives &) = delete;
  ~MpiCollectives();

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  /// all_gather in place, the others out of place. `count` elements are the whole buffer.
  void call(Collective collective, float *send, float *recv, int64_t count) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace zero::bench
