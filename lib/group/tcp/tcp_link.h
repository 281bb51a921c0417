/// @file TcpLink: a connection that carries frames, each after its length. Knows nothing of their
/// meaning or of the peer.
#pragma once

#include "core/owned_fd.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace zero {

/// For one thread at a time. No call blocks.
class TcpLink {
 public:
  static constexpr size_t kLongestFrame = size_t{1} << 20;

  /// Takes over a non-blocking stream socket that is connected or about to be.
  explicit TcpLink(OwnedFd socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  /// True while frames may be sent or received.
  bool open() const { return socket_.valid(); }
  /// From now on, a received frame of more than `nbytes` ends the link. For peers that have not
  /// identified themselves.
  void limit(size_t nbytes) { longest_ = nbytes; }

  /// Appends a frame, the parts one after another, to the frames that wait, and sends as much as
  /// the socket takes. At most kLongestFrame. If it throws std::bad_alloc, nothing of the frame is
  /// sent.
  void send(std::initializer_list<std::span<const std::byte>> parts);
  /// Sends more of the frames that wait. Returns true if none waits, also because the connection
  /// has ended, which receive() reports.
  bool flush();

  enum class Received { frame, nothing, ended };
  /// Returns the next complete frame. `ended`: the peer or an error ended the connection, or the
  /// input was no frame; all earlier frames were returned. If it throws std::bad_alloc, nothing is
  /// lost.
  Received receive(std::vector<std::byte> *out);

 private:
  void read_more();

  OwnedFd socket_;
  size_t longest_ = kLongestFrame;
  std::vector<std::byte> outgoing_;
  size_t sent_ = 0;  ///< bytes of outgoing_ that were sent
  std::vector<std::byte> incoming_;
  size_t taken_ = 0;  ///< bytes of incoming_ that were returned
};

}  // namespace zero
