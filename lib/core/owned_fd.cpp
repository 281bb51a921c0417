/// @file Closing file descriptors.
#include "core/owned_fd.h"

#include <unistd.h>

namespace zero {

void OwnedFd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace zero
