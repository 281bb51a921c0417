/// @file TCP sockets that do not block, and the addresses they have. Knows nothing of what is said over them.
#pragma once

#include "core/owned_fd.h"
#include "core/status.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// Where a socket is. An IPv4 address that came in the dress of IPv6 is kept as IPv4: who is told it may not have IPv6.
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

/// The addresses of a host. The resolver may take its time. Returns why there are none, or an empty text.
std::string resolve_host(const std::string &host, uint16_t port, std::vector<TcpAddress> *out);

/// The first address of an interface that is up, running and not the loopback, IPv4 before IPv6; 127.0.0.1 when there is none.
std::string address_of_this_host();

/// Listens on `port` (0: any that is free) of all addresses, IPv6 and IPv4. Errors: ZERO_E_SYSTEM.
Status listen_on(uint16_t port, OwnedFd *out);

/// The next connection; empty, and errno says why, when there is none.
OwnedFd accept_connection(int listener);

/// Begins to connect. Returns 0 or an errno.
int begin_connection(const TcpAddress &address, OwnedFd *out);
/// 0 when the connection is there, EINPROGRESS while it is not decided, otherwise why there is none.
int connection_state(int socket);

/// Ends a connection so that the other side can read all it was sent: what was not read here would make the system cut it off.
void end_connection(int socket);

}  // namespace zero
