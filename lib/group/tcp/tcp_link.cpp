/// @file Frames through buffers, so that no call waits for the peer.
#include "group/tcp/tcp_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace zero {
namespace {

constexpr size_t kLengthNbytes = sizeof(uint32_t);

/// Reserves memory for `nbytes` more, so that inserting them cannot fail half-way. Grows as insert
/// would.
void make_room(std::vector<std::byte> *buffer, size_t nbytes) {
  const size_t needed = buffer->size() + nbytes;
  if (needed > buffer->capacity()) buffer->reserve(std::max(needed, 2 * buffer->capacity()));
}

}  // namespace

void TcpLink::send(std::initializer_list<std::span<const std::byte>> parts) {
  if (!open()) return;
  // Drops bytes that were sent: the buffer of a busy link may never become empty.
  if (sent_ > outgoing_.size() / 2) {
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  uint32_t length = 0;
  for (const auto &part : parts) length += static_cast<uint32_t>(part.size());
  const auto *head = reinterpret_cast<const std::byte *>(&length);
  make_room(&outgoing_, sizeof length + length);
  outgoing_.insert(outgoing_.end(), head, head + sizeof length);
  for (const auto &part : parts) outgoing_.insert(outgoing_.end(), part.begin(), part.end());
  flush();
}

bool TcpLink::flush() {
  while (open() && sent_ < outgoing_.size()) {
    const ssize_t nbytes = ::send(socket_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (nbytes >= 0) {
      sent_ += static_cast<size_t>(nbytes);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      return false;
    } else if (errno != EINTR) {
      break;  // receive() reports the end, after frames that came before it
    }
  }
  outgoing_.clear();
  sent_ = 0;
  return true;
}

TcpLink::Received TcpLink::receive(std::vector<std::byte> *out) {
  for (bool read = false;; read = true) {
    uint32_t length = 0;
    const size_t there = incoming_.size() - taken_;
    if (there >= kLengthNbytes) std::memcpy(&length, incoming_.data() + taken_, sizeof length);
    if (length > longest_) socket_.reset(-1);
    if (there >= kLengthNbytes && length <= longest_ && there - kLengthNbytes >= length) {
      const auto begin = incoming_.begin() + static_cast<std::ptrdiff_t>(taken_ + kLengthNbytes);
      out->assign(begin, begin + length);
      taken_ += kLengthNbytes + length;
      return Received::frame;
    }
    if (!open()) return Received::ended;
    if (read) return Received::nothing;
    read_more();
  }
}

/// Reads all bytes that have arrived, up to the longest frame.
void TcpLink::read_more() {
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  constexpr size_t kLeastRead = 4096;
  std::array<std::byte, 65536> buffer;
  while (incoming_.size() < longest_ + kLengthNbytes) {
    // Bytes that are read from the socket must have room.
    make_room(&incoming_, kLeastRead);
    const size_t room = std::min(buffer.size(), incoming_.capacity() - incoming_.size());
    const ssize_t nbytes = ::recv(socket_.get(), buffer.data(), room, MSG_DONTWAIT);
    if (nbytes > 0) {
      incoming_.insert(incoming_.end(), buffer.begin(), buffer.begin() + nbytes);
    } else if (nbytes == 0 || (errno != EINTR && errno != EAGAIN)) {
      socket_.reset(-1);
      return;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

}  // namespace zero
