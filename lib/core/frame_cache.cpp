/// @file Free lists by size class of 128 bytes. Blocks stay reachable from a static table until the process ends.
#include "core/frame_cache.h"

#include <array>
#include <mutex>
#include <new>

namespace zero {
namespace {

constexpr std::size_t kClassBytes = 128;
constexpr std::size_t kClasses = 64;

struct Block {
  Block *next;
};

struct Cache {
  std::mutex mutex;
  std::array<Block *, kClasses> free{};
};

Cache &cache() {
  // Never destroyed: threads may still give blocks back while the process ends.
  static Cache *instance = new Cache;
  return *instance;
}

std::size_t class_of(std::size_t nbytes) { return (nbytes + kClassBytes - 1) / kClassBytes; }

}  // namespace

void *cached_allocate(std::size_t nbytes) {
  const std::size_t size_class = class_of(nbytes);
  if (size_class >= kClasses) return ::operator new(nbytes);
  {
    Cache &all = cache();
    const std::lock_guard lock(all.mutex);
    if (Block *block = all.free[size_class]) {
      all.free[size_class] = block->next;
      return block;
    }
  }
  return ::operator new(size_class *kClassBytes);
}

void cached_free(void *data, std::size_t nbytes) noexcept {
  const std::size_t size_class = class_of(nbytes);
  if (size_class >= kClasses) {
    ::operator delete(data);
    return;
  }
  Cache &all = cache();
  const std::lock_guard lock(all.mutex);
  all.free[size_class] = new (data) Block{all.free[size_class]};
}

void drop_cached_frames() noexcept {
  Cache &all = cache();
  const std::lock_guard lock(all.mutex);
  for (Block *&head : all.free) {
    while (head != nullptr) {
      Block *block = head;
      head = block->next;
      ::operator delete(block);
    }
  }
}

}  // namespace zero
