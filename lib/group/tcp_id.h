/// @file The id of a meeting over TCP: "host:port/token", and the sockets that wait for the meetings whose ids this process made.
/// Knows nothing of ranks. What makes and checks ids is declared in tcp_meeting.h.
#pragma once

#include "core/status.h"
#include "group/rendezvous_socket.h"

#include <cstdint>
#include <string>

namespace zero {

/// An id, taken apart.
struct TcpPlace {
  std::string host;  ///< an IPv6 address without its brackets
  uint16_t port = 0;
  std::string token;

  std::string text() const;  ///< "host:port": what errors show, as the token lets in who has it
};

/// Errors: ZERO_E_INVALID_ARGUMENT.
Status parse_tcp_id(const std::string &id, TcpPlace *out);

/// The socket that make_tcp_id of this process left for the meeting; empty when there is none (any more).
OwnedFd take_listener(const std::string &id);

}  // namespace zero
