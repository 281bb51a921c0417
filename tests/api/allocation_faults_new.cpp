/// @file operator new for sanitizer builds, in which libzero shares the process's C++ run time; elsewhere it has one of its own, which asks
/// malloc. See allocation_faults.h.
#include "allocation_faults.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void *allocate(std::size_t nbytes, std::size_t alignment, const void *caller) {
  if (allocation_fault_due(caller) != 0) return nullptr;
  const std::size_t room = (nbytes + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(nbytes) : std::aligned_alloc(alignment, room);
}

void *allocate_or_throw(std::size_t nbytes, std::size_t alignment, const void *caller) {
  void *data = allocate(nbytes, alignment, caller);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void *operator new(std::size_t nbytes) { return allocate_or_throw(nbytes, 1, __builtin_return_address(0)); }
void *operator new[](std::size_t nbytes) { return allocate_or_throw(nbytes, 1, __builtin_return_address(0)); }
void *operator new(std::size_t nbytes, const std::nothrow_t &) noexcept { return allocate(nbytes, 1, __builtin_return_address(0)); }
void *operator new[](std::size_t nbytes, const std::nothrow_t &) noexcept { return allocate(nbytes, 1, __builtin_return_address(0)); }
void *operator new(std::size_t nbytes, std::align_val_t alignment) {
  return allocate_or_throw(nbytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void *data) noexcept { std::free(data); }
void operator delete[](void *data) noexcept { std::free(data); }
void operator delete(void *data, std::size_t) noexcept { std::free(data); }
void operator delete[](void *data, std::size_t) noexcept { std::free(data); }
void operator delete(void *data, const std::nothrow_t &) noexcept { std::free(data); }
void operator delete(void *data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void *data, std::size_t, std::align_val_t) noexcept { std::free(data); }
