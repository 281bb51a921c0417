/// @file Memory of emulated devices: addresses that nobody can read, and the bytes behind them.
#include "tests/memory/caller_device.h"
#include "tests/memory/emulated_device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace {

/// What a device has given out: its addresses cannot be read, the bytes lie elsewhere.
struct Piece {
  int64_t nbytes;
  int64_t device;
  char *bytes;
};

std::mutex memory_mutex;
std::map<const char *, Piece> &memory() {
  static auto *pieces = new std::map<const char *, Piece>;
  return *pieces;
}

/// The piece that holds an address, or nullptr.
const Piece *find(const void *address, int64_t *out_offset) {
  const auto *at = static_cast<const char *>(address);
  auto next = memory().upper_bound(at);
  if (next == memory().begin()) return nullptr;
  --next;
  *out_offset = at - next->first;
  return *out_offset < next->second.nbytes ? &next->second : nullptr;
}

/// nullptr for memory of the host.
void *find_bytes(const void *address, int64_t nbytes) {
  const std::lock_guard lock(memory_mutex);
  int64_t offset = 0;
  const Piece *piece = find(address, &offset);
  if (piece == nullptr) return nullptr;
  if (offset + nbytes > piece->nbytes) std::abort();
  return piece->bytes + offset;
}

}  // namespace

int64_t emulated::device_of_memory(const void *address) {
  const std::lock_guard lock(memory_mutex);
  int64_t offset = 0;
  const Piece *piece = find(address, &offset);
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
  void *address = ::mmap(nullptr, static_cast<size_t>(nbytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) std::abort();
  const std::lock_guard lock(memory_mutex);
  memory()[static_cast<const char *>(address)] = {nbytes, device, static_cast<char *>(std::malloc(static_cast<size_t>(nbytes)))};
  return address;
}

void caller_free(void *data) {
  const std::lock_guard lock(memory_mutex);
  const auto piece = memory().find(static_cast<const char *>(data));
  if (piece == memory().end()) std::abort();
  std::free(piece->second.bytes);
  ::munmap(data, static_cast<size_t>(piece->second.nbytes));
  memory().erase(piece);
}
