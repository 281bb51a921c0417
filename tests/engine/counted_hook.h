/// @file An allocator hook that counts the bytes an optimizer has.
#pragma once

#include "core/config.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace zero::test {

struct CountedHook {
  std::atomic<int64_t> private_nbytes{0};
  std::atomic<int64_t> shared_nbytes{0};

  int64_t nbytes() const { return private_nbytes + shared_nbytes; }
  AllocatorHook table() {
    return {[](uint64_t nbytes, uint64_t alignment, void *user) {
              static_cast<CountedHook *>(user)->private_nbytes += static_cast<int64_t>(nbytes);
              return std::aligned_alloc(alignment, nbytes);
            },
            [](void *data, uint64_t nbytes, void *user) {
              static_cast<CountedHook *>(user)->private_nbytes -= static_cast<int64_t>(nbytes);
              std::free(data);
            },
            [](int64_t delta, void *user) { static_cast<CountedHook *>(user)->shared_nbytes += delta; }, this};
  }
};

}  // namespace zero::test
