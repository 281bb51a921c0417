/// @file ParamPool: buffers for whole tensors that are gathered or decoded. The pool has at most as
/// many buffers as were in use at one time, and none is larger than the largest tensor. Once a step
/// repeats, taking a buffer allocates nothing. Knows no shards.
#pragma once

#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// The sizes of a pool's buffers, and the set of buffers in use.
class PoolSizes {
 public:
  /// Takes a buffer of at least `nbytes` and returns its index: the smallest free one that is large
  /// enough, otherwise a new one in place of the largest free one.
  size_t take(int64_t nbytes);
  void give_back(size_t index) { buffers_[index].free = true; }
  int64_t nbytes(size_t index) const { return buffers_[index].nbytes; }
  int64_t nbytes() const;
  int64_t used_nbytes() const;
  /// Total bytes of all buffers after take(nbytes).
  int64_t nbytes_after(int64_t nbytes) const;
  /// Index of the largest free buffer that is not empty; count() if there is none.
  size_t largest_free() const;
  size_t count() const { return buffers_.size(); }
  /// Records that the buffer has no memory any more.
  void empty(size_t index) { buffers_[index] = {0, true}; }

 private:
  struct Buffer {
    int64_t nbytes;
    bool free;
  };

  /// The index that take(nbytes) would use; count() if it would add a buffer.
  size_t choose(int64_t nbytes) const;

  std::vector<Buffer> buffers_;
};

class ParamPool {
 public:
  void open(const MemorySource &source) { source_ = source; }
  void release();

  Status take(int64_t nbytes, std::byte **out);
  void give_back(const std::byte *data);
  /// Frees unused buffers, the largest first, until all buffers together have at most
  /// `most_nbytes`.
  void trim(int64_t most_nbytes);
  /// Bytes of all buffers in use, and of the buffer that begins at `data`.
  int64_t used_nbytes() const { return sizes_.used_nbytes(); }
  int64_t nbytes_of(const std::byte *data) const;

 private:
  MemorySource source_{};
  PoolSizes sizes_;
  std::vector<Arena> arenas_;  ///< by index
};

}  // namespace zero
