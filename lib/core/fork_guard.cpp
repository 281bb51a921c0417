/// @file Fork guard by a page that the kernel clears in children, without a handler in the host
/// program.
#include "core/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

namespace zero {
namespace {

constexpr int kAlive = 0x5a45524f;

volatile int *guard_page() noexcept {
  void *page = ::mmap(nullptr, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || ::madvise(page, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), MADV_WIPEONFORK) != 0) return nullptr;
  auto *guard = static_cast<volatile int *>(page);
  *guard = kAlive;
  return guard;
}

}  // namespace

bool forked() noexcept {
  static volatile int *const guard = guard_page();
  return guard != nullptr && *guard != kAlive;
}

}  // namespace zero
