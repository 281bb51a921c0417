/// @file TCP sockets through system calls. No socket blocks, and each is closed when the process
/// runs another program.
#include "group/tcp/tcp_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace zero {
namespace {

using Kind = TcpAddress::Kind;

constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

TcpAddress from_system(const sockaddr *address) {
  TcpAddress out;
  if (address->sa_family == AF_INET) {
    sockaddr_in plain;
    std::memcpy(&plain, address, sizeof plain);
    out.kind = Kind::ipv4;
    std::memcpy(out.bytes.data(), &plain.sin_addr, sizeof plain.sin_addr);
    out.port = ntohs(plain.sin_port);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 plain;
    std::memcpy(&plain, address, sizeof plain);
    const uint8_t *bytes = plain.sin6_addr.s6_addr;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&plain.sin6_addr);
    out.kind = mapped ? Kind::ipv4 : Kind::ipv6;
    std::copy(bytes + (mapped ? 12 : 0), bytes + 16, out.bytes.begin());
    out.port = ntohs(plain.sin6_port);
  }
  return out;
}

socklen_t to_system(const TcpAddress &address, sockaddr_storage *out) {
  *out = {};
  if (address.kind == Kind::ipv4) {
    sockaddr_in plain{};
    plain.sin_family = AF_INET;
    plain.sin_port = htons(address.port);
    std::memcpy(&plain.sin_addr, address.bytes.data(), sizeof plain.sin_addr);
    std::memcpy(out, &plain, sizeof plain);
    return sizeof plain;
  }
  sockaddr_in6 plain{};
  plain.sin6_family = AF_INET6;
  plain.sin6_port = htons(address.port);
  std::memcpy(&plain.sin6_addr, address.bytes.data(), sizeof plain.sin6_addr);
  std::memcpy(out, &plain, sizeof plain);
  return sizeof plain;
}

void set_option(int socket, int level, int name, int value) {
  // If the system lacks an option, the end of a peer is detected later; the connection works all
  // the same.
  static_cast<void>(::setsockopt(socket, level, name, &value, sizeof value));
}

/// Ends the connections of a vanished host within half a minute. A slow process keeps its
/// connections, because its kernel answers for it, while unread data fits its buffer (64 KiB at
/// least). Linux counts a full buffer as a failure to answer.
void tune(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

OwnedFd make_socket(Kind kind) {
  return open_fd([kind] { return ::socket(kind == Kind::ipv6 ? AF_INET6 : AF_INET, kStream, 0); });
}

/// Opens a socket that listens on all addresses of a family. Returns 0 or an errno.
int listen_with(Kind kind, uint16_t port, OwnedFd *out) {
  constexpr int kBacklog = 4096;
  OwnedFd socket = make_socket(kind);
  if (!socket.valid()) return errno;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (kind == Kind::ipv6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  TcpAddress any;
  any.kind = kind;
  any.port = port;
  sockaddr_storage address;
  const socklen_t length = to_system(any, &address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0) return errno;
  // listen(), not bind(), detects that another socket listens there.
  if (::listen(socket.get(), kBacklog) != 0) return errno;
  *out = std::move(socket);
  return 0;
}

std::string host_text(const TcpAddress &address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.kind != Kind::none) ::inet_ntop(address.kind == Kind::ipv4 ? AF_INET : AF_INET6, address.bytes.data(), text, sizeof text);
  return text;
}

}  // namespace

bool TcpAddress::loopback() const {
  if (kind == Kind::ipv4) return bytes[0] == 127;
  std::array<uint8_t, 16> one{};
  one[15] = 1;
  return kind == Kind::ipv6 && bytes == one;
}

std::string TcpAddress::text() const {
  const std::string host = kind == Kind::ipv6 ? "[" + host_text(*this) + "]" : host_text(*this);
  return host + ":" + std::to_string(port);
}

TcpAddress local_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  static_cast<void>(::getsockname(socket, reinterpret_cast<sockaddr *>(&address), &length));
  return from_system(reinterpret_cast<const sockaddr *>(&address));
}

TcpAddress peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  static_cast<void>(::getpeername(socket, reinterpret_cast<sockaddr *>(&address), &length));
  return from_system(reinterpret_cast<const sockaddr *>(&address));
}

std::string resolve_host(const std::string &host, uint16_t port, std::vector<TcpAddress> *out) {
  out->clear();
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  const StandardFdsHeld held;  // the C library opens sockets and files of its own
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (error == EAI_SYSTEM) return std::strerror(errno);
  if (error != 0) return ::gai_strerror(error);
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owned(found, ::freeaddrinfo);
  for (; found != nullptr; found = found->ai_next) {
    TcpAddress address = from_system(found->ai_addr);
    address.port = port;
    const bool known = std::find(out->begin(), out->end(), address) != out->end();
    if (address.kind != Kind::none && !known) out->push_back(address);
  }
  return out->empty() ? "it has no address" : "";
}

std::string address_of_this_host() {
  ifaddrs *first = nullptr;
  const StandardFdsHeld held;  // for the C library's own socket
  if (::getifaddrs(&first) != 0) return "127.0.0.1";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> owned(first, ::freeifaddrs);
  TcpAddress best;
  for (const ifaddrs *each = first; each != nullptr; each = each->ifa_next) {
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;
    if (each->ifa_addr == nullptr || (each->ifa_flags & (kUsable | IFF_LOOPBACK)) != kUsable) continue;
    const TcpAddress address = from_system(each->ifa_addr);
    // A link-local IPv6 address is valid only together with its interface.
    const bool link_local = address.kind == Kind::ipv6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
    if (address.kind == Kind::none || address.loopback() || link_local) continue;
    if (best.kind == Kind::none || (best.kind == Kind::ipv6 && address.kind == Kind::ipv4)) best = address;
  }
  return best.kind == Kind::none ? "127.0.0.1" : host_text(best);
}

Status listen_on(uint16_t port, OwnedFd *out) {
  int error = listen_with(Kind::ipv6, port, out);
  // A system without IPv6 reports that by various errors.
  if (error != 0 && error != EADDRINUSE && error != EACCES && error != EMFILE && error != ENFILE) {
    error = listen_with(Kind::ipv4, port, out);
  }
  ZERO_CHECK(error != EADDRINUSE, ZERO_E_SYSTEM,
             "port %u of this host is in use: another program, or another group, listens there; choose another port (0 lets the system "
             "choose where an id is made)",
             static_cast<unsigned>(port));
  ZERO_CHECK(error == 0, ZERO_E_SYSTEM, "cannot listen on port %u: %s", static_cast<unsigned>(port), std::strerror(error));
  return {};
}

OwnedFd accept_connection(int listener) {
  OwnedFd socket = open_fd([listener] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (socket.valid()) tune(socket.get());
  return socket;
}

int begin_connection(const TcpAddress &address, OwnedFd *out) {
  OwnedFd socket = make_socket(address.kind);
  if (!socket.valid()) return errno;
  tune(socket.get());
  sockaddr_storage storage;
  const socklen_t length = to_system(address, &storage);
  const bool begun = ::connect(socket.get(), reinterpret_cast<const sockaddr *>(&storage), length) == 0 || errno == EINPROGRESS;
  if (!begun && errno != EINTR) return errno;
  *out = std::move(socket);
  return 0;
}

int connection_state(int socket) {
  pollfd look{socket, POLLOUT, 0};
  const int told = ::poll(&look, 1, 0);
  if (told < 0 && errno != EINTR) return errno;
  if (told <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  // Without a listener, a socket whose own port equals the requested one is connected to itself.
  return local_address(socket) == peer_address(socket) ? ECONNREFUSED : 0;
}

void end_connection(int socket) {
  constexpr int kMostReads = 64;
  std::array<char, 4096> rest;
  static_cast<void>(::shutdown(socket, SHUT_WR));
  for (int i = 0; i<kMostReads && ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT)> 0; ++i) {
  }
}

}  // namespace zero
