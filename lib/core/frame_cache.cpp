/// @file Free lists by size class of 128 bytes: a short one for each thread, which nobody else touches, and one behind them for all threads.
/// Blocks stay reachable until the process ends.
#include "core/frame_cache.h"

#include <array>
#include <mutex>
#include <new>

namespace zero {
namespace {

constexpr std::size_t kClassBytes = 128;
constexpr std::size_t kClasses = 64;
/// Blocks of a class that a thread keeps. What one thread takes and another gives back goes through the list of all.
constexpr int32_t kMostOwn = 16;

struct Block {
  Block *next;
};

using Lists = std::array<Block *, kClasses>;

void push(Block *&list, void *data) noexcept { list = new (data) Block{list}; }

void *pop(Block *&list) noexcept {
  Block *block = list;
  if (block != nullptr) list = block->next;
  return block;
}

void drop(Lists &lists) noexcept {
  for (Block *&list : lists) {
    while (void *block = pop(list)) ::operator delete(block);
  }
}

struct Shared {
  std::mutex mutex;
  Lists free{};
};

Shared &shared() {
  // Never destroyed: threads may still give blocks back while the process ends.
  static Shared *instance = new Shared;
  return *instance;
}

struct Own {
  Lists free;
  std::array<int32_t, kClasses> counts;
  bool ended;  ///< the thread is being taken down, and its list with it
};
/// Without a destructor, so that it may be used for as long as the thread lives.
constinit thread_local Own own{};

/// Gives the thread's blocks to all when it ends.
struct OwnEnd {
  bool awaited = false;
  ~OwnEnd() {
    own.ended = true;
    Shared &all = shared();
    const std::lock_guard lock(all.mutex);
    for (std::size_t size_class = 0; size_class < kClasses; ++size_class) {
      while (void *block = pop(own.free[size_class])) push(all.free[size_class], block);
    }
    own.counts = {};
  }
};
thread_local OwnEnd own_end;

std::size_t class_of(std::size_t nbytes) { return (nbytes + kClassBytes - 1) / kClassBytes; }

}  // namespace

void *cached_allocate(std::size_t nbytes) {
  const std::size_t size_class = class_of(nbytes);
  if (size_class >= kClasses) return ::operator new(nbytes);
  if (void *block = pop(own.free[size_class])) {
    --own.counts[size_class];
    return block;
  }
  {
    Shared &all = shared();
    const std::lock_guard lock(all.mutex);
    if (void *block = pop(all.free[size_class])) return block;
  }
  return ::operator new(size_class *kClassBytes);
}

void cached_free(void *data, std::size_t nbytes) noexcept {
  const std::size_t size_class = class_of(nbytes);
  if (size_class >= kClasses) {
    ::operator delete(data);
    return;
  }
  if (!own.ended && own.counts[size_class] < kMostOwn) {
    own_end.awaited = true;  // the first use makes its destructor run when this thread ends
    push(own.free[size_class], data);
    ++own.counts[size_class];
    return;
  }
  Shared &all = shared();
  const std::lock_guard lock(all.mutex);
  push(all.free[size_class], data);
}

void drop_cached_frames() noexcept {
  drop(own.free);
  own.counts = {};
  Shared &all = shared();
  const std::lock_guard lock(all.mutex);
  drop(all.free);
}

}  // namespace zero
