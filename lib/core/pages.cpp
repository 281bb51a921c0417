/// @file Pages by mmap and madvise.
#include "core/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace zero {
namespace {

// Linux 5.14 and 6.1; older kernels refuse these numbers, older headers do not know them.
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;

int64_t page_nbytes() {
  static const int64_t nbytes = ::sysconf(_SC_PAGESIZE);
  return nbytes;
}

/// Returns the first multiple of a huge page at or after `data`.
std::byte *huge_page_at(std::byte *data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return data + (-address & static_cast<uintptr_t>(kHugePageBytes - 1));
}

/// Reserves addresses for `nbytes` from a multiple of a huge page on. Only there can memory files
/// use huge pages.
std::byte *reserve_aligned(int64_t nbytes) {
  if (nbytes > std::numeric_limits<int64_t>::max() - kHugePageBytes) return nullptr;
  const int64_t reserved = nbytes + kHugePageBytes;
  void *data = ::mmap(nullptr, static_cast<size_t>(reserved), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  auto *begin = static_cast<std::byte *>(data);
  std::byte *aligned = huge_page_at(begin);
  if (aligned > begin) ::munmap(begin, static_cast<size_t>(aligned - begin));
  const int64_t used = (nbytes + page_nbytes() - 1) / page_nbytes() * page_nbytes();
  ::munmap(aligned + used, static_cast<size_t>(begin + reserved - (aligned + used)));
  return aligned;
}

/// Moves these pages into huge pages as far as they fill whole ones. One page of each is touched
/// first: its place decides the NUMA node of the huge page. Harmless if the system has no huge
/// pages.
void gather_huge_pages(std::byte *data, int64_t nbytes) {
  std::byte *first = huge_page_at(data);
  const int64_t count = (data + nbytes - first) / kHugePageBytes;
  if (count <= 0) return;
  for (int64_t i = 0; i < count; ++i) {
    if (::madvise(first + i * kHugePageBytes, static_cast<size_t>(page_nbytes()), kPopulateWrite) != 0) return;
  }
  (void)::madvise(first, static_cast<size_t>(count * kHugePageBytes), kCollapse);
}

std::byte *map_kind(int64_t nbytes, int kind, int fd) {
  std::byte *wanted = nullptr;
  if (nbytes >= kHugePageBytes) {
    wanted = reserve_aligned(nbytes);
    if (wanted == nullptr) return nullptr;
    kind |= MAP_FIXED;
  }
  void *data = ::mmap(wanted, static_cast<size_t>(nbytes), PROT_READ | PROT_WRITE, kind, fd, 0);
  if (data == MAP_FAILED) {
    const int reason = errno;
    if (wanted != nullptr) ::munmap(wanted, static_cast<size_t>(nbytes));
    errno = reason;
    return nullptr;
  }
  // Advice only: kernels without huge pages refuse it, without harm.
  (void)::madvise(data, static_cast<size_t>(nbytes), MADV_HUGEPAGE);
  return static_cast<std::byte *>(data);
}

}  // namespace

std::byte *map_pages(int64_t nbytes) { return map_kind(nbytes, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

std::byte *map_sparse_pages(int64_t nbytes) {
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *data = ::mmap(nullptr, static_cast<size_t>(nbytes), PROT_READ | PROT_WRITE, kKind, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  (void)::madvise(data, static_cast<size_t>(nbytes), MADV_NOHUGEPAGE);
  return static_cast<std::byte *>(data);
}

std::byte *map_file_pages(int64_t nbytes, int fd) { return map_kind(nbytes, MAP_SHARED | MAP_NORESERVE, fd); }

Status touch_pages(std::byte *data, int64_t nbytes) {
  gather_huge_pages(data, nbytes);
  if (::madvise(data, static_cast<size_t>(nbytes), kPopulateWrite) == 0) return {};
  const int reason = errno;
  // On an older kernel, a signal or a sandbox, each page is touched instead.
  const bool passed_over = reason == EINVAL || reason == EINTR || reason == ENOSYS || reason == EPERM;
  ZERO_CHECK(passed_over, ZERO_E_OUT_OF_MEMORY, "cannot get %lld bytes of memory: %s", lld(nbytes),
             std::strerror(reason));
  for (int64_t at = 0; at < nbytes; at += page_nbytes()) {
    *reinterpret_cast<volatile std::byte *>(data + at) = std::byte{0};
  }
  return {};
}

}  // namespace zero
