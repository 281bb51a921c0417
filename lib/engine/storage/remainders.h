/// @file Remainders: of a bf16 parameter that is written. Those of the elements that change become 0, so that masters are what was written.
/// Knows memory; never why it is written.
#pragma once

#include "core/status.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>

namespace zero {

class Remainders {
 public:
  /// Before the write: `count` elements of this rank, and what completes them. `source` is that of both.
  Status keep(const MemorySource &source, std::byte *params, std::byte *remainders, int64_t count);
  /// After it.
  Status clear_changed();

 private:
  MemorySource source_{};
  std::byte *params_ = nullptr;
  std::byte *remainders_ = nullptr;
  int64_t count_ = 0;
  Arena before_;  ///< on the host
};

}  // namespace zero
