/// @file BucketPool: buffers for the buckets of stages 2 and 3. The first are in one shared arena,
/// so that peers read them in place; the pool grows by private ones. Knows no gradients.
#pragma once

#include "memory/arena.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

class BucketPool {
 public:
  /// Makes the first buffers for buckets of these sizes; `held` buckets are held at once.
  ///
  /// Bucket sizes fall into classes, the largest first; a class spans sizes down to a quarter of
  /// its largest. For each class the pool makes at most `held` buffers, each as large as the
  /// largest bucket of the class. Once a class has `held` buffers, each smaller class gets one, so
  /// that a small bucket that is held for long does not occupy a large buffer. With a limit, all
  /// buffers have the size of the largest bucket, so that any order of buckets fits equally many.
  /// limit_nbytes 0 = no limit.
  Status open(const MemorySource &source, std::span<const int64_t> buckets, int64_t held, int64_t limit_nbytes);
  /// Bytes that open() would allocate.
  static int64_t nbytes(std::span<const int64_t> buckets, int64_t held, int64_t limit_nbytes);
  void release();

  /// A free buffer of at least this size: one that peers read in place where there is one, of these
  /// the smallest; or nullptr.
  std::byte *take(int64_t nbytes);
  /// A new buffer, in place of a private one that is free and too small. Errors: ZERO_E_POOL_LIMIT,
  /// ZERO_E_OUT_OF_MEMORY.
  Status grow(int64_t nbytes, std::byte **out);
  void give_back(std::byte *data);
  /// True when one more buffer would pass the limit.
  bool at_limit() const;

  const std::shared_ptr<Mapping> &mapping() const { return first_.mapping(); }
  /// Bytes of the buffers that were there from the start.
  int64_t first_nbytes() const { return first_.nbytes(); }
  /// Times the pool grew. Any thread.
  int64_t grow_count() const { return grow_count_.load(std::memory_order_relaxed); }

 private:
  struct Buffer {
    std::byte *data = nullptr;
    int64_t nbytes = 0;
    bool free = true;
    Arena own{};  ///< memory of a private buffer
  };

  MemorySource source_{};
  int64_t limit_nbytes_ = 0;
  int64_t largest_ = 0;  ///< size of the largest bucket
  Arena first_;
  /// Those that peers read in place come first, and of these the smallest.
  std::vector<Buffer> buffers_;
  size_t shared_count_ = 0;
  std::atomic<int64_t> grow_count_{0};
};

}  // namespace zero
