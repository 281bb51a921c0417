/// @file TcpDial: connects to an address, again and again until it succeeds. Knows nothing of the
/// peer.
#pragma once

#include "group/tcp/tcp_link.h"
#include "group/tcp/tcp_socket.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// Tries addresses in turn, with pauses that grow to a quarter of a second. Never blocks.
class TcpDial {
 public:
  /// Needs at least one address.
  explicit TcpDial(std::vector<TcpAddress> addresses) : addresses_(std::move(addresses)) {}

  /// Returns a connection once there is one, otherwise nullptr. Returns it once; again() resumes
  /// the attempts.
  std::unique_ptr<TcpLink> look();
  /// Reports that the connection was of no use, for this reason, and resumes the attempts.
  void again(const std::string &why);

  bool goes_to(const std::vector<TcpAddress> &addresses) const { return addresses_ == addresses; }
  size_t addresses() const { return addresses_.size(); }
  /// Returns true if every address has failed since the last call that returned true.
  bool tried_all();
  /// The result of the last attempt, such as "192.0.2.1:80: Connection refused", or that it is
  /// pending.
  std::string trouble() const;

 private:
  void begin();

  std::vector<TcpAddress> addresses_;
  size_t at_ = 0;
  size_t failed_ = 0;
  OwnedFd socket_;
  int64_t give_up_ns_ = 0;
  int64_t resume_ns_ = 0;
  int64_t pause_ns_ = 0;
  std::string trouble_;
};

}  // namespace zero
