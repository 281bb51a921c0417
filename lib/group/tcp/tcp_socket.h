/// @file Non-blocking TCP sockets and their addresses. Knows nothing of the data.
#pragma once

#include "core/owned_fd.h"
#include "core/status.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// The address of a socket. An IPv4 address that is mapped to IPv6 is kept as IPv4, because a rank
/// that receives it may not have IPv6.
struct TcpAddress {
  enum class Kind : uint8_t { none, ipv4, ipv6 };
  Kind kind = Kind::none;
  std::array<uint8_t, 16> bytes{};  ///< the first 4 for IPv4
  uint16_t port = 0;

  bool loopback() const;
  std::string text() const;  ///< "192.0.2.1:80", "[2001:db8::1]:80"
  bool operator==(const TcpAddress &) const = default;
};

TcpAddress local_address(int socket);
TcpAddress peer_address(int socket);

/// Resolves the addresses of a host; the resolver may block. Returns the reason if there are none,
/// or an empty text.
std::string resolve_host(const std::string &host, uint16_t port, std::vector<TcpAddress> *out);

/// The first address of an interface that is up, running and not the loopback, IPv4 before IPv6;
/// 127.0.0.1 if there is none.
std::string address_of_this_host();

/// Listens on `port` (0: any that is free) of all addresses, IPv6 and IPv4. Errors: ZERO_E_SYSTEM.
Status listen_on(uint16_t port, OwnedFd *out);

/// The next connection; if there is none, empty, with the reason in errno.
OwnedFd accept_connection(int listener);

/// Begins to connect. Returns 0 or an errno.
int begin_connection(const TcpAddress &address, OwnedFd *out);
/// Returns 0 once the connection is established, EINPROGRESS while it is pending, otherwise the
/// error.
int connection_state(int socket);

/// Ends a connection so that the peer can read all that was sent to it. Reads and drops pending
/// input, because the system resets a connection that is closed with unread bytes.
void end_connection(int socket);

}  // namespace zero
