/// @file The end of a socket that listens.
#pragma once

#include "core/owned_fd.h"

#include <sys/socket.h>

namespace zero {

/// Ends it for the copies of it, too, that processes forked meanwhile hold: they would keep callers waiting for whom nobody listens.
inline void end_listening(OwnedFd *listener) {
  if (listener->valid()) ::shutdown(listener->get(), SHUT_RDWR);
  listener->reset(-1);
}

}  // namespace zero
