/// @file The id of a meeting over TCP: "host:port/token", and the sockets that wait for the meetings whose ids this process made.
/// Knows nothing of ranks.
#pragma once

#include "core/owned_fd.h"
#include "core/status.h"

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

/// Listens on `port` (0: any that is free) of this host and makes an id of it that rank 0 of this process can meet with. `host` is how the
/// others reach this host; empty: the first address of an interface that is up and not of the host alone, IPv4 before IPv6. The port is
/// held until the meeting, or until the process ends. Errors: ZERO_E_INVALID_ARGUMENT when host or port can be in no id; ZERO_E_SYSTEM,
/// also when the port is in use.
Status make_tcp_id(const std::string &host, int64_t port, std::string *out);

/// ZERO_OK when `id` has the form of TcpTerms::id: a host name, IPv4 address or IPv6 address in brackets, a port within 1 .. 65535, and a
/// token of letters, digits, ".", "_" and "-"; at most 255 bytes in all. Otherwise ZERO_E_INVALID_ARGUMENT.
Status check_tcp_id(const std::string &id);

/// Errors: ZERO_E_INVALID_ARGUMENT.
Status parse_tcp_id(const std::string &id, TcpPlace *out);

/// The socket that make_tcp_id of this process left for the meeting; empty when there is none (any more).
OwnedFd take_listener(const std::string &id);

}  // namespace zero
