/// @file Frame cache: small memory blocks are reused, so that operations of a warmed-up training
/// step allocate nothing.
#pragma once

#include <cstddef>

namespace zero {

/// Returns `nbytes` bytes from the cache. If it holds none of that size, from operator new, which
/// may throw std::bad_alloc.
void *cached_allocate(std::size_t nbytes);
/// Returns memory to the cache; `nbytes` as in the allocation.
void cached_free(void *data, std::size_t nbytes) noexcept;

/// The share of the cache of one thread. Reserve it before the thread starts, so that the thread
/// takes no memory from the system when it first runs.
struct FrameCache;
/// May throw std::bad_alloc.
FrameCache *reserve_frame_cache();
/// Called by the started thread, before anything else here.
void use_frame_cache(FrameCache *cache) noexcept;
/// Called if the thread could not be started.
void return_frame_cache(FrameCache *cache) noexcept;

/// Returns to the system all memory cached by this thread and by ended ones. Tests of a lack of
/// memory begin with it.
void drop_cached_frames() noexcept;

/// Allocator over the cache, for std::allocate_shared.
template <class T>
struct CachedAllocator {
  using value_type = T;
  CachedAllocator() = default;
  template <class U>
  CachedAllocator(const CachedAllocator<U> &) noexcept {}
  T *allocate(std::size_t count) { return static_cast<T *>(cached_allocate(count * sizeof(T))); }
  void deallocate(T *data, std::size_t count) noexcept { cached_free(data, count * sizeof(T)); }
  friend bool operator==(const CachedAllocator &, const CachedAllocator &) { return true; }
};

}  // namespace zero
