/// @file Which of many sockets have something to tell now. Knows nothing of what they are for.
#pragma once

#include <poll.h>

#include <span>

namespace zero {

/// Sets `revents` of those that can be read, or have ended, without waiting; false when there are none. Where the system refuses to say,
/// all are named: whoever looks must be ready to find nothing.
bool find_ready(std::span<pollfd> sockets) noexcept;

}  // namespace zero
