/// @file The memory of emulated devices: addresses that cannot be read, and the bytes behind them.
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_device.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace {

/// An allocation of a device: one mapping, with the bytes in its first half, followed by the
/// unreadable addresses.
struct Allocation {
  int64_t nbytes;
  int64_t device;
  char *bytes;
  char *mapping;
  size_t half_nbytes;
};

constexpr int64_t kAlignment = 256;

std::mutex memory_mutex;
std::map<const char *, Allocation> &memory() {
  static auto *pieces = new std::map<const char *, Allocation>;
  return *pieces;
}

/// The allocation that contains an address, or nullptr.
const Allocation *find(const void *address, int64_t *out_offset) {
  const auto *at = static_cast<const char *>(address);
  auto next = memory().upper_bound(at);
  if (next == memory().begin()) return nullptr;
  --next;
  *out_offset = at - next->first;
  return *out_offset < next->second.nbytes ? &next->second : nullptr;
}

/// Returns nullptr for host memory.
void *find_bytes(const void *address, int64_t nbytes) {
  const std::lock_guard lock(memory_mutex);
  int64_t offset = 0;
  const Allocation *piece = find(address, &offset);
  if (piece == nullptr) return nullptr;
  if (offset + nbytes > piece->nbytes) std::abort();
  return piece->bytes + offset;
}

}  // namespace

int64_t emulated::device_of_memory(const void *address) {
  const std::lock_guard lock(memory_mutex);
  int64_t offset = 0;
  const Allocation *piece = find(address, &offset);
  return piece != nullptr ? piece->device : -1;
}

void *emulated::bytes_of_device(const void *address, int64_t nbytes) {
  void *bytes = find_bytes(address, nbytes);
  if (bytes == nullptr) std::abort();
  return bytes;
}

void *emulated::bytes_at(const void *address, int64_t nbytes) {
  void *bytes = find_bytes(address, nbytes);
  return bytes != nullptr ? bytes : const_cast<void *>(address);
}

void *caller_alloc(int64_t device, int64_t nbytes) {
  const auto rounded = [nbytes](int64_t unit) { return (nbytes + unit - 1) / unit * unit; };
  const auto half_nbytes = static_cast<size_t>(rounded(::sysconf(_SC_PAGESIZE)));
  void *mapping = ::mmap(nullptr, 2 * half_nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || ::mprotect(mapping, half_nbytes, PROT_READ | PROT_WRITE) != 0) std::abort();
  auto *first = static_cast<char *>(mapping);
  char *address = first + half_nbytes;
  char *bytes = address - rounded(kAlignment);
  ASAN_POISON_MEMORY_REGION(first, bytes - first);
  ASAN_POISON_MEMORY_REGION(bytes + nbytes, address - (bytes + nbytes));
  const std::lock_guard lock(memory_mutex);
  memory()[address] = {nbytes, device, bytes, first, half_nbytes};
  return address;
}

void caller_free(void *data) {
  const std::lock_guard lock(memory_mutex);
  const auto piece = memory().find(static_cast<const char *>(data));
  if (piece == memory().end()) std::abort();
  ASAN_UNPOISON_MEMORY_REGION(piece->second.mapping, piece->second.half_nbytes);
  ::munmap(piece->second.mapping, 2 * piece->second.half_nbytes);
  memory().erase(piece);
}
