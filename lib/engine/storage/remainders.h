/// @file Remainders: keeps the remainders of bf16 parameters in line with a write to the
/// parameters. The remainder of each changed element becomes 0, so that its master equals the
/// written value. Knows memory; never the reason of the write.
#pragma once

#include "core/status.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class Remainders {
 public:
  /// Call before the write, with `count` parameters of this rank and their remainders. `source` is
  /// that of both.
  Status keep(const MemorySource &source, std::byte *params, std::byte *remainders, int64_t count);
  /// Call after the write. Zeroes the remainders of the elements that changed.
  Status clear_changed();

 private:
  MemorySource source_{};
  std::byte *params_ = nullptr;
  std::byte *remainders_ = nullptr;
  int64_t count_ = 0;
  Arena before_;  ///< on the host
};

}  // namespace zero
