/// @file Free lists by size class of 128 bytes: each thread has its own, without locks. A freed
/// block returns to the thread that allocated it, and a thread begins with a stock. So a repeated
/// step allocates nothing, whichever threads run its operations.
#include "core/frame_cache.h"

#include "core/fork_guard.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

namespace zero {
namespace {

constexpr std::size_t kClassBytes = 128;
constexpr std::size_t kClasses = 64;

/// The header in front of each block.
struct alignas(16) Header {
  FrameCache *home;
  Header *next;  ///< next free block
  std::size_t size_class;
};

}  // namespace

/// One thread's lists. Never destroyed: when its thread ends, another adopts it, so that its blocks
/// can still be returned.
struct FrameCache {
  std::array<Header *, kClasses> free{};
  /// Blocks freed by other threads; only the owner takes them, all at once.
  std::atomic<Header *> returned{nullptr};
  FrameCache *next_orphan = nullptr;
};

namespace {

struct Orphans {
  std::mutex mutex;
  FrameCache *first = nullptr;
};

Orphans &orphans() {
  static auto *instance = new Orphans;
  return *instance;
}

void put(FrameCache &cache, Header *block) noexcept {
  block->next = cache.free[block->size_class];
  cache.free[block->size_class] = block;
}

Header *make_block(FrameCache &cache, std::size_t size_class) {
  return new (::operator new(sizeof(Header) + size_class * kClassBytes)) Header{&cache, nullptr, size_class};
}

/// Adds the blocks that the operations of a step need, so that it does not matter which thread
/// first advances one. About 85 KiB.
void stock(FrameCache &cache) noexcept {
  constexpr std::size_t kStocked = 16;
  constexpr std::size_t kSmall = 3;
  try {
    for (std::size_t size_class = 1; size_class <= kStocked; ++size_class) {
      const int blocks = size_class <= kSmall ? 24 : 4;
      for (int i = 0; i < blocks; ++i) put(cache, make_block(cache, size_class));
    }
  } catch (const std::bad_alloc &) {
    return;  // a later allocation reports it
  }
}

FrameCache *adopt() {
  Orphans &all = orphans();
  const std::lock_guard lock(all.mutex);
  FrameCache *cache = all.first;
  if (cache == nullptr) {
    cache = new FrameCache;
    stock(*cache);
    return cache;
  }
  all.first = cache->next_orphan;
  return cache;
}

void leave(FrameCache &cache) noexcept {
  Orphans &all = orphans();
  const std::lock_guard lock(all.mutex);
  cache.next_orphan = all.first;
  all.first = &cache;
}

/// Has no destructor, so that it may be read as long as the thread lives. nullptr: none yet, or the
/// thread is ending.
constinit thread_local FrameCache *own = nullptr;

struct OwnEnd {
  FrameCache *cache = nullptr;
  ~OwnEnd() {
    // In a child of fork the lock may be held forever, by a thread that only the parent has.
    if (forked()) return;
    own = nullptr;
    if (cache != nullptr) leave(*cache);
  }
};
thread_local OwnEnd own_end;

/// After the thread's locals are destroyed, each call adopts anew. The few blocks freed then go to
/// a cache that no thread uses.
FrameCache &own_cache() {
  if (own == nullptr) {
    own = adopt();
    own_end.cache = own;
  }
  return *own;
}

void sort_returned(FrameCache &cache) noexcept {
  Header *block = cache.returned.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    Header *next = block->next;
    put(cache, block);
    block = next;
  }
}

void drop(FrameCache &cache) noexcept {
  sort_returned(cache);
  for (Header *&list : cache.free) {
    while (list != nullptr) {
      Header *block = list;
      list = block->next;
      ::operator delete(block);
    }
  }
}

std::size_t class_of(std::size_t nbytes) { return (nbytes + kClassBytes - 1) / kClassBytes; }

}  // namespace

void *cached_allocate(std::size_t nbytes) {
  const std::size_t size_class = class_of(nbytes);
  if (size_class >= kClasses) return ::operator new(nbytes);
  FrameCache &cache = own_cache();
  Header *&list = cache.free[size_class];
  if (list == nullptr) sort_returned(cache);
  if (list == nullptr) return make_block(cache, size_class) + 1;
  Header *block = list;
  list = block->next;
  return block + 1;
}

void cached_free(void *data, std::size_t nbytes) noexcept {
  if (class_of(nbytes) >= kClasses) {
    ::operator delete(data);
    return;
  }
  Header *block = static_cast<Header *>(data) - 1;
  FrameCache &home = *block->home;
  if (&home == own) return put(home, block);
  block->next = home.returned.load(std::memory_order_relaxed);
  while (!home.returned.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

FrameCache *reserve_frame_cache() { return adopt(); }

void use_frame_cache(FrameCache *cache) noexcept {
  own = cache;
  own_end.cache = cache;
}

void return_frame_cache(FrameCache *cache) noexcept { leave(*cache); }

void drop_cached_frames() noexcept {
  if (own != nullptr) drop(*own);
  Orphans &all = orphans();
  const std::lock_guard lock(all.mutex);
  for (FrameCache *cache = all.first; cache != nullptr; cache = cache->next_orphan) drop(*cache);
}

}  // namespace zero
