/// @file Closes file descriptors, and keeps them away from the program's standard ones.
#include "core/owned_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace zero {
namespace {

constexpr int kFirstFree = 3;

struct Holding {
  std::mutex mutex;
  int holders = 0;
  std::array<bool, kFirstFree> ours{};
};
constinit Holding holding;

bool is_closed(int fd) { return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

/// Takes the closed ones among 0, 1 and 2. If even this open fails, only above_standard_fds()
/// protects them.
void take_closed() {
  while (is_closed(0) || is_closed(1) || is_closed(2)) {
    const int fd = ::open("/", O_PATH | O_CLOEXEC);
    if (fd >= kFirstFree) ::close(fd);  // the program has opened the closed number meanwhile
    if (fd < 0 || fd >= kFirstFree) return;
    holding.ours[static_cast<size_t>(fd)] = true;
  }
}

void give_back() {
  for (int fd = 0; fd < kFirstFree; ++fd) {
    if (!std::exchange(holding.ours[static_cast<size_t>(fd)], false)) continue;
    // The program may have opened a file of its own there meanwhile.
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_PATH) != 0) ::close(fd);
  }
}

}  // namespace

void OwnedFd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

StandardFdsHeld::StandardFdsHeld() noexcept {
  const int reason = errno;
  const std::lock_guard lock(holding.mutex);
  ++holding.holders;
  take_closed();
  errno = reason;
}

StandardFdsHeld::~StandardFdsHeld() {
  const int reason = errno;
  const std::lock_guard lock(holding.mutex);
  if (--holding.holders == 0) give_back();
  errno = reason;
}

int above_standard_fds(int fd) noexcept {
  if (fd < 0 || fd >= kFirstFree) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return moved;
}

OwnedFd duplicate(int fd) noexcept { return OwnedFd(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree)); }

}  // namespace zero
