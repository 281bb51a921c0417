/// @file Allocates and frees the memory of arenas.
#include "memory/arena.h"

#include "core/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace zero {
namespace {

Status map_private(int64_t nbytes, std::byte **out) {
  std::byte *data = map_pages(nbytes);
  ZERO_CHECK(data != nullptr, ZERO_E_OUT_OF_MEMORY, "cannot get %lld bytes of memory: %s", lld(nbytes), std::strerror(errno));
  Status status = touch_pages(data, nbytes);
  if (!status.ok()) {
    ::munmap(data, static_cast<size_t>(nbytes));
    return status;
  }
  *out = data;
  return {};
}

Status take_from_hook(const AllocatorHook &hook, int64_t nbytes, std::byte **out) {
  void *data = hook.alloc(static_cast<uint64_t>(nbytes), kViewAlignment, hook.user);
  ZERO_CHECK(data != nullptr, ZERO_E_OUT_OF_MEMORY, "the memory hook returned NULL for %lld bytes", lld(nbytes));
  if (reinterpret_cast<uintptr_t>(data) % kViewAlignment != 0) {
    hook.free(data, static_cast<uint64_t>(nbytes), hook.user);
    return Status::error(ZERO_E_OUT_OF_MEMORY, "the memory hook returned %p, but must return memory aligned to %lld bytes", data,
                         lld(kViewAlignment));
  }
  std::memset(data, 0, static_cast<size_t>(nbytes));
  *out = static_cast<std::byte *>(data);
  return {};
}

}  // namespace

int64_t Arena::private_nbytes(int64_t nbytes) {
  static const int64_t page = ::sysconf(_SC_PAGESIZE);
  return (nbytes + page - 1) / page * page;
}

void Arena::hold(const MemorySource &source, int32_t category, std::shared_ptr<Mapping> mapping) {
  source_ = source;
  category_ = category;
  mapping_ = std::move(mapping);
  data_ = mapping_->data();
  nbytes_ = mapping_->nbytes();
  source.accounting->add(category, nbytes_);
}

/// Threads of this process access the memory of all their devices by its address.
Status Arena::create_on_device(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out) {
  Arena arena;
  std::shared_ptr<Mapping> mapping;
  if (nbytes > 0) {
    ZERO_TRY(source.device->alloc(nbytes, &mapping));
    arena.hold(source, category, std::move(mapping));
  }
  *out = std::move(arena);
  return {};
}

Status Arena::create_private(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out) {
  Arena arena;
  nbytes = private_nbytes(nbytes);
  if (source.device != nullptr) return create_on_device(source, category, nbytes, out);
  arena.source_ = source;
  arena.category_ = category;
  if (nbytes > 0) {
    arena.from_hook_ = source.hook->alloc != nullptr;
    if (arena.from_hook_) {
      ZERO_TRY(take_from_hook(*source.hook, nbytes, &arena.data_));
    } else {
      ZERO_TRY(map_private(nbytes, &arena.data_));
    }
    arena.nbytes_ = nbytes;
    source.accounting->add(category, nbytes);
  }
  *out = std::move(arena);
  return {};
}

Status Arena::create_shared(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out) {
  if (source.device != nullptr) return create_on_device(source, category, std::max(private_nbytes(nbytes), private_nbytes(1)), out);
  Arena arena;
  std::shared_ptr<Mapping> mapping;
  ZERO_TRY(source.for_threads ? Mapping::create_for_threads(nbytes, &mapping) : Mapping::create_shared(nbytes, &mapping));
  ZERO_TRY(touch_pages(mapping->data(), mapping->nbytes()));
  arena.hold(source, category, std::move(mapping));
  if (source.hook->shared != nullptr) source.hook->shared(arena.nbytes_, source.hook->user);
  *out = std::move(arena);
  return {};
}

void Arena::release() {
  if (data_ == nullptr) return;
  source_.accounting->add(category_, -nbytes_);
  if (mapping_ != nullptr) {
    if (source_.hook->shared != nullptr && source_.device == nullptr) source_.hook->shared(-nbytes_, source_.hook->user);
    mapping_.reset();
  } else if (from_hook_) {
    source_.hook->free(data_, static_cast<uint64_t>(nbytes_), source_.hook->user);
  } else {
    ::munmap(data_, static_cast<size_t>(nbytes_));
  }
  data_ = nullptr;
  nbytes_ = 0;
  taken_ = 0;
}

std::byte *Arena::take(int64_t nbytes) {
  std::byte *view = data_ + taken_;
  taken_ += view_nbytes(nbytes);
  return view;
}

Arena &Arena::operator=(Arena &&other) noexcept {
  if (this != &other) {
    release();
    swap(other);
  }
  return *this;
}

void Arena::swap(Arena &other) noexcept {
  std::swap(source_, other.source_);
  std::swap(category_, other.category_);
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(taken_, other.taken_);
  std::swap(from_hook_, other.from_hook_);
  std::swap(mapping_, other.mapping_);
}

}  // namespace zero
