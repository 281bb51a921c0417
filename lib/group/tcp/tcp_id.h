/// @file The id of a meeting over TCP, "host:port/token", and the listening sockets of ids that
/// this process made. Knows nothing of ranks.
#pragma once

#include "core/owned_fd.h"
#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero {

/// A parsed id.
struct TcpPlace {
  std::string host;  ///< an IPv6 address without its brackets
  uint16_t port = 0;
  std::string token;

  std::string text() const;  ///< "host:port" for errors, without the token, which grants access
};

/// Listens on `port` of this host (0: any free port), and makes an id with which rank 0 of this
/// process can meet. The other ranks reach this host by `host`; empty: the first address of an
/// interface that is up and not the loopback, IPv4 before IPv6.
/// The port is held until the meeting, or until the process ends. Errors: ZERO_E_INVALID_ARGUMENT
/// if host or port is not valid in an id; ZERO_E_SYSTEM, also if the port is in use.
Status make_tcp_id(const std::string &host, int64_t port, std::string *out);

/// Returns ZERO_OK if `id` has the form of TcpTerms::id, otherwise ZERO_E_INVALID_ARGUMENT. The
/// host is a name, an IPv4 address or an IPv6 address in brackets; the port is within 1 .. 65535.
/// The token consists of letters, digits, ".", "_" and "-". The id has at most 255 bytes.
Status check_tcp_id(const std::string &id);

/// Errors: ZERO_E_INVALID_ARGUMENT.
Status parse_tcp_id(const std::string &id, TcpPlace *out);

/// Takes the socket that make_tcp_id of this process opened for the meeting; empty if there is
/// none, or if it was taken before.
OwnedFd take_listener(const std::string &id);

}  // namespace zero
