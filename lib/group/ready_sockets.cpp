/// @file Checks sockets with poll(2).
#include "group/ready_sockets.h"

#include <cerrno>

namespace zero {

bool find_ready(std::span<pollfd> sockets) noexcept {
  if (sockets.empty()) return false;
  const int told = ::poll(sockets.data(), sockets.size(), 0);
  if (told >= 0 || errno == EINTR) return told > 0;
  // poll fails in a sandbox, if the limit of descriptors was lowered below their number (EINVAL),
  // or without kernel memory.
  for (pollfd &socket : sockets) socket.revents = socket.fd >= 0 ? socket.events : short{0};
  return true;
}

}  // namespace zero
