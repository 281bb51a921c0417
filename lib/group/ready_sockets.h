/// @file Finds the sockets in a list that have events now. Knows nothing of their use.
#pragma once

#include <poll.h>

#include <span>

namespace zero {

/// Without waiting, sets `revents` of the sockets that can be read or have ended. Returns false if
/// there are none. If poll fails, all sockets are reported, so the caller must be ready to find
/// nothing.
bool find_ready(std::span<pollfd> sockets) noexcept;

}  // namespace zero
