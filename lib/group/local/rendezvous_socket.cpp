/// @file Packets over abstract Unix sockets: no path in the file system, so nothing remains after a
/// kill.
#include "group/local/rendezvous_socket.h"

#include "core/descriptor_room.h"
#include "core/hash.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr size_t kMaxPacketBytes = sizeof(PacketHeader) + kMaxBlobBytes;

/// The abstract address of a name. A name that is too long is replaced by a hash.
socklen_t make_address(const std::string &name, sockaddr_un *out) {
  *out = {};
  out->sun_family = AF_UNIX;
  std::string path = "libzero." + std::to_string(::geteuid()) + "." + name;
  if (path.size() + 1 > sizeof out->sun_path) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "#%016llx%016llx", static_cast<unsigned long long>(hash_of_text(name)),
                  static_cast<unsigned long long>(hash_of_text(name, 1)));
    path = "libzero." + std::to_string(::geteuid()) + "." + digits;
  }
  std::memcpy(out->sun_path + 1, path.data(), path.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
}

OwnedFd make_socket() {
  return open_fd([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

/// True if the peer closed the connection, or if this program closed descriptors that are not its
/// own.
bool means_closed(int error) {
  return error == ECONNRESET || error == EPIPE || error == ENOTCONN || error == ECONNREFUSED || error == EBADF || error == ENOTSOCK;
}

/// Takes the first descriptor of a message and closes any other.
OwnedFd take_descriptor(msghdr *message) {
  OwnedFd first;
  for (cmsghdr *control = CMSG_FIRSTHDR(message); control != nullptr; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      OwnedFd owned(above_standard_fds(fd));
      if (!first.valid()) first = std::move(owned);
    }
  }
  return first;
}

}  // namespace

Received receive_packet(int socket, Packet *out) {
  std::array<std::byte, kMaxPacketBytes> buffer;
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  ssize_t nbytes;
  bool ended = false;
  const StandardFdsHeld held;  // protects the descriptor that may arrive
  do {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    nbytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // If packets and the peer's end arrive between its two checks, or the peer ended with unread
    // packets, Linux reports the end before the packets. Only the second report is final.
  } while ((nbytes < 0 && errno == EINTR) || ((nbytes == 0 || (nbytes < 0 && errno == ECONNRESET)) && !std::exchange(ended, true)));
  if (nbytes < 0 && errno == EAGAIN) return Received::nothing;
  if (nbytes < 0) return means_closed(errno) ? Received::closed : Received::refused;
  out->fd = take_descriptor(&message);
  if (nbytes == 0) return Received::closed;
  if ((message.msg_flags & MSG_TRUNC) != 0 || static_cast<size_t>(nbytes) < sizeof(PacketHeader)) return Received::garbage;
  std::memcpy(&out->header, buffer.data(), sizeof(PacketHeader));
  if (out->header.magic != kMeetingMagic) return Received::garbage;
  // Only the version of a foreign header is reported; its other fields have no meaning here.
  if (out->header.version != kMeetingVersion) return Received::packet;
  if (out->header.blob_nbytes != static_cast<size_t>(nbytes) - sizeof(PacketHeader)) return Received::garbage;
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Received::no_descriptors;
  out->blob.assign(buffer.begin() + sizeof(PacketHeader), buffer.begin() + nbytes);
  return Received::packet;
}

Sent send_packet(int socket, PacketHeader header, std::span<const std::byte> blob, int fd) {
  header.blob_nbytes = blob.size();
  iovec parts[2] = {{&header, sizeof header}, {const_cast<std::byte *>(blob.data()), blob.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  ssize_t nbytes;
  do {
    nbytes = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (nbytes < 0 && errno == EINTR);
  if (nbytes >= 0) return Sent::done;
  // Too many descriptors in flight, or no buffer. Both pass once the peer has read.
  if (errno == EAGAIN || errno == ETOOMANYREFS || errno == ENOBUFS) return Sent::full;
  return means_closed(errno) ? Sent::closed : Sent::refused;
}

PeerIdentity identify(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {0, static_cast<uint32_t>(-1)};
  return {credentials.pid, credentials.uid};
}

Status enter_meeting(const std::string &name, OwnedFd *out_socket, Role *out_role) {
  constexpr int kBacklog = 4096;
  OwnedFd socket = make_socket();
  ZERO_CHECK(socket.valid(), ZERO_E_SYSTEM, "cannot make a socket: %s", system_error_text(errno).c_str());
  sockaddr_un address;
  const socklen_t length = make_address(name, &address);
  const auto *plain = reinterpret_cast<const sockaddr *>(&address);
  *out_role = Role::again;
  if (::bind(socket.get(), plain, length) == 0) {
    ZERO_CHECK(::listen(socket.get(), kBacklog) == 0, ZERO_E_SYSTEM, "cannot listen on a socket: %s", std::strerror(errno));
    *out_role = Role::root;
  } else if (errno != EADDRINUSE) {
    return Status::error(ZERO_E_SYSTEM, "cannot bind a local socket: %s", std::strerror(errno));
  } else if (::connect(socket.get(), plain, length) == 0) {
    *out_role = Role::client;
  } else if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) {
    // These three errors pass: the owner of the name has gone, or has many other connections to
    // accept first.
    return Status::error(ZERO_E_SYSTEM, "cannot connect to the rank that leads the meeting: %s", std::strerror(errno));
  }
  if (*out_role != Role::again) *out_socket = std::move(socket);
  return {};
}

OwnedFd connect_to_root(const std::string &name) {
  OwnedFd socket = make_socket();
  sockaddr_un address;
  const socklen_t length = make_address(name, &address);
  if (socket.valid() && ::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0) socket.reset(-1);
  return socket;
}

}  // namespace zero
