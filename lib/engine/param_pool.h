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

 private:
  struct Buffer {
    Arena arena;
    bool free;
  };

  MemorySource source_{};
  std::vector<Buffer> buffers_;
};

}  // namespace zero
