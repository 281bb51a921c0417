/// @file ParamPool: buffers for whole tensors of stage 3. There are never more of them than were in use at one time, and none is larger
/// than the largest tensor; after a step that repeats, taking one allocates nothing. Knows no shards.
#pragma once

#include "memory/arena.h"

#include <cstdint>
#include <vector>

namespace zero {

class ParamPool {
 public:
  void open(const MemorySource &source) { source_ = source; }
  void release() { buffers_.clear(); }

  /// Memory of at least `nbytes`: the smallest free buffer that is large enough; otherwise a new one in place of the largest free one.
  Status take(int64_t nbytes, std::byte **out);
  void give_back(const std::byte *data);
  /// Bytes of all buffers after take(nbytes).
  int64_t nbytes_after(int64_t nbytes) const;
  /// Bytes of the buffer that begins at `data`.
  int64_t buffer_nbytes(const std::byte *data) const;

 private:
  struct Buffer {
    Arena arena;
    bool free;
  };

  /// The smallest free buffer that is large enough, and the largest free one; -1: none.
  struct Choice {
    int64_t fits = -1;
    int64_t largest = -1;
  };
  Choice choose(int64_t nbytes) const;

  MemorySource source_{};
  std::vector<Buffer> buffers_;
};

}  // namespace zero
