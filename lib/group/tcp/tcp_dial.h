/// @file Going to an address until somebody is there. Knows nothing of who that is.
#pragma once

#include "group/tcp/tcp_link.h"
#include "group/tcp/tcp_socket.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// Tries addresses in turn, with a pause between that grows to a quarter of a second. Never blocks.
class TcpDial {
 public:
  /// At least one address.
  explicit TcpDial(std::vector<TcpAddress> addresses) : addresses_(std::move(addresses)) {}

  /// A connection, as soon as there is one; otherwise nullptr. Given once: again() goes on.
  std::unique_ptr<TcpLink> look();
  /// The connection was of no use, for this reason: tries on.
  void again(const std::string &why);

  bool goes_to(const std::vector<TcpAddress> &addresses) const { return addresses_ == addresses; }
  size_t addresses() const { return addresses_.size(); }
  /// Whether each address was tried without success since the last call of this.
  bool tried_all();
  /// "192.0.2.1:80: Connection refused": what became of the last attempt, or that it is not decided.
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
