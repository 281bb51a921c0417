/// @file ParamPool: buffers for whole tensors that are gathered or decoded. There are never more of them than were in use at one time, and
/// none is larger than the largest tensor; after a step that repeats, taking one allocates nothing. Knows no shards.
#pragma once

#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

/// The sizes of a pool's buffers, and which are in use.
class PoolSizes {
 public:
  /// Index of a buffer of at least `nbytes`: the smallest free one that is large enough; otherwise a new one in place of the largest free
  /// one.
  size_t take(int64_t nbytes);
  void give_back(size_t index) { buffers_[index].free = true; }
  int64_t nbytes(size_t index) const { return buffers_[index].nbytes; }
  int64_t nbytes() const;
  int64_t used_nbytes() const;
  /// Of all buffers after take(nbytes).
  int64_t nbytes_after(int64_t nbytes) const;
  /// Index of the largest free buffer that is not empty; count() where there is none.
  size_t largest_free() const;
  size_t count() const { return buffers_.size(); }
  /// It has no memory any more.
  void empty(size_t index) { buffers_[index] = {0, true}; }

 private:
  struct Buffer {
    int64_t nbytes;
    bool free;
  };

  /// What take(nbytes) chooses; count() where a buffer more is made.
  size_t choose(int64_t nbytes) const;

  std::vector<Buffer> buffers_;
};

class ParamPool {
 public:
  void open(const MemorySource &source) { source_ = source; }
  void release();

  Status take(int64_t nbytes, std::byte **out);
  void give_back(const std::byte *data);
  /// Frees what nobody uses, the largest first, until all buffers together have at most that.
  void trim(int64_t most_nbytes);
  /// Of buffers in use; of the one that begins at `data`.
  int64_t used_nbytes() const { return sizes_.used_nbytes(); }
  int64_t nbytes_of(const std::byte *data) const;

 private:
  MemorySource source_{};
  PoolSizes sizes_;
  std::vector<Arena> arenas_;  ///< by index
};

}  // namespace zero
