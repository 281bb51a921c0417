/// @file BucketPool: buffers of one size for the buckets of stages 2 and 3. The first lie in one shared arena, so that peers read them in
/// place; the pool grows by private ones. Knows no gradients.
#pragma once

#include "memory/arena.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace zero {

class BucketPool {
 public:
  /// Makes the first `count` buffers of `nbytes` each, or as many as the limit allows. limit_nbytes 0 = none.
  Status open(const MemorySource &source, int64_t nbytes, int64_t count, int64_t limit_nbytes);
  /// What open would take.
  static int64_t nbytes(int64_t nbytes, int64_t count, int64_t limit_nbytes);
  void release();

  /// A free buffer, or nullptr.
  std::byte *take();
  /// A new buffer. Errors: ZERO_E_POOL_LIMIT, ZERO_E_OUT_OF_MEMORY.
  Status grow(std::byte **out);
  void give_back(std::byte *buffer);
  /// True when one more buffer would pass the limit.
  bool at_limit() const;

  const std::shared_ptr<Mapping> &mapping() const { return first_.mapping(); }
  /// Bytes of the buffers that were there from the start.
  int64_t first_nbytes() const { return first_.nbytes(); }
  /// Times the pool grew. Any thread.
  int64_t grow_count() const { return grow_count_.load(std::memory_order_relaxed); }

 private:
  MemorySource source_{};
  int64_t nbytes_ = 0;
  int64_t limit_nbytes_ = 0;
  int64_t buffers_ = 0;
  Arena first_;
  std::vector<Arena> more_;
  std::vector<std::byte *> free_;  ///< has room for all buffers, so giving back never allocates; those that peers read in place come last
  std::atomic<int64_t> grow_count_{0};
};

}  // namespace zero
