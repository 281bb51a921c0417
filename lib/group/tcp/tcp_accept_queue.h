/// @file TcpAcceptQueue: accepts connections and reads the first frame of each. Knows nothing of
/// the content of frames.
#pragma once

#include "core/status.h"
#include "group/tcp/tcp_link.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace zero {

/// A connection and its first frame.
struct TcpArrival {
  std::unique_ptr<TcpLink> link;
  std::vector<std::byte> frame;
};

class TcpAcceptQueue {
 public:
  /// Most connections without a first frame. Beyond them the oldest is closed; a rank that loses
  /// its connection that way connects again.
  static constexpr size_t kMostStrangers = 64;

  /// A first frame of more than `longest` bytes closes its connection.
  TcpAcceptQueue(OwnedFd listener, size_t longest) : listener_(std::move(listener)), longest_(longest) {}

  uint16_t port() const;
  /// Frees the port.
  void close();
  /// Returns the connections whose first frame has arrived since the last call. Errors:
  /// ZERO_E_SYSTEM if connections cannot be accepted, for example for lack of file descriptors.
  Status look(std::vector<TcpArrival> *out);

 private:
  void receive(std::vector<TcpArrival> *out);

  OwnedFd listener_;
  size_t longest_;
  std::deque<std::unique_ptr<TcpLink>> strangers_;
};

}  // namespace zero
