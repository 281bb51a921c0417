/// @file Staggered: arrays for loops that go through several at once, with an optimizer's distance between them (engine/storage/slot_memory.h): at
/// addresses that are equal but for a few bits, loops would compete with themselves for lines of the caches.
#pragma once

#include "engine/storage/slot_memory.h"
#include "memory/arena.h"
#include "must.h"

#include <cstddef>
#include <cstdint>

namespace zero::bench {

class Staggered {
 public:
  /// Room for `array_count` arrays of together `nbytes`.
  Staggered(int64_t array_count, int64_t nbytes) {
    const Status status = Arena::create_private({&hook_, &accounting_}, ZERO_MEMORY_STATE, array_count * kGap + nbytes, &arena_);
    if (!status.ok()) fail("memory for arrays", status.text());
  }
  Staggered(const Staggered &) = delete;

  template <class T>
  T *take(int64_t count) {
    (void)arena_.take(kSlotStagger);
    return reinterpret_cast<T *>(arena_.take(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  static constexpr int64_t kGap = kSlotStagger + kViewAlignment;

  AllocatorHook hook_;
  Accounting accounting_;
  Arena arena_;
};

}  // namespace zero::bench
