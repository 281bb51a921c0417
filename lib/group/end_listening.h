/// @file Ends a listening socket.
#pragma once

#include "core/owned_fd.h"

#include <sys/socket.h>

namespace zero {

/// Ends it in forked processes, too, which may have copies of the descriptor. Otherwise clients
/// could still connect, but nobody would accept them.
inline void end_listening(OwnedFd *listener) {
  if (listener->valid()) ::shutdown(listener->get(), SHUT_RDWR);
  listener->reset(-1);
}

}  // namespace zero
