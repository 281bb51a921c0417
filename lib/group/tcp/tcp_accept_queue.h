/// @file Where connections come in: they are strangers until their first frame is there. Knows nothing of what a frame says.
#pragma once

#include "core/status.h"
#include "group/tcp/tcp_link.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace zero {

/// A connection that has said something.
struct TcpArrival {
  std::unique_ptr<TcpLink> link;
  std::vector<std::byte> frame;
};

class TcpAcceptQueue {
 public:
  /// Strangers beyond these are sent away, the oldest first; a rank that loses its place so comes again.
  static constexpr size_t kMostStrangers = 64;

  /// A first frame of more than `longest` bytes ends its connection.
  TcpAcceptQueue(OwnedFd listener, size_t longest) : listener_(std::move(listener)), longest_(longest) {}

  uint16_t port() const;
  /// The port is free.
  void close();
  /// Those whose first frame has come since the last look. Errors: ZERO_E_SYSTEM when no file descriptors are left.
  Status look(std::vector<TcpArrival> *out);

 private:
  void receive(std::vector<TcpArrival> *out);

  OwnedFd listener_;
  size_t longest_;
  std::deque<std::unique_ptr<TcpLink>> strangers_;
};

}  // namespace zero
