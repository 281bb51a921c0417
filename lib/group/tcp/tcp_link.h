/// @file TcpLink: a connection that carries frames, each its length and so many bytes. Knows nothing of what they mean or who is there.
#pragma once

#include "core/owned_fd.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace zero {

/// One thread at a time. Nothing here waits.
class TcpLink {
 public:
  static constexpr size_t kLongestFrame = size_t{1} << 20;

  /// Takes over a stream socket that is connected, or about to be, and does not block.
  explicit TcpLink(OwnedFd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  /// Whether frames may still come or go.
  bool open() const { return socket_.valid(); }
  /// From now on a frame of more than `nbytes` that comes ends the link: for those who have not shown yet who they are.
  void limit(size_t nbytes) { longest_ = nbytes; }

  /// Puts a frame, the parts one after another, behind those that wait to be sent, and sends what the socket takes. At most kLongestFrame.
  /// Without memory for it, std::bad_alloc, and nothing of it is sent.
  void send(std::initializer_list<std::span<const std::byte>> parts);
  /// Sends more of what waits. True when nothing does any more, also because the connection has ended: that it has, receive() says.
  bool flush();

  enum class Received { frame, nothing, ended };
  /// The next frame that has come whole. Ended: by the other side, by an error, or because what came is no frame; all that came before was
  /// given. Without memory, std::bad_alloc, and nothing is lost.
  Received receive(std::vector<std::byte> *out);

 private:
  void read_more();

  OwnedFd socket_;
  size_t longest_ = kLongestFrame;
  std::vector<std::byte> outgoing_;
  size_t sent_ = 0;  ///< of outgoing_
  std::vector<std::byte> incoming_;
  size_t taken_ = 0;  ///< of incoming_
};

}  // namespace zero
