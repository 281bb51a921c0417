/// @file Attempts to connect, one at a time.
#include "group/tcp/tcp_dial.h"

#include "core/clock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kFirstPauseNs = 5'000'000;
constexpr int64_t kLongestPauseNs = 250'000'000;
/// The time limit of one attempt, in which the system sends two more packets. Without it, an
/// address that drops packets would delay the others for minutes.
constexpr int64_t kAttemptNs = 4'000'000'000;

}  // namespace

std::unique_ptr<TcpLink> TcpDial::look() {
  if (!socket_.valid()) {
    if (now_ns() < resume_ns_) return nullptr;
    begin();
    if (!socket_.valid()) return nullptr;
  }
  const int state = connection_state(socket_.get());
  if (state == 0) return std::make_unique<TcpLink>(std::move(socket_));
  if (state != EINPROGRESS)
    again(std::strerror(state));
  else if (now_ns() >= give_up_ns_)
    again("no answer");
  return nullptr;
}

void TcpDial::begin() {
  const int error = begin_connection(addresses_[at_], &socket_);
  give_up_ns_ = now_ns() + kAttemptNs;
  if (error != 0) again(std::strerror(error));
}

void TcpDial::again(const std::string &why) {
  trouble_ = addresses_[at_].text() + ": " + why;
  socket_.reset(-1);
  at_ = (at_ + 1) % addresses_.size();
  ++failed_;
  pause_ns_ = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  resume_ns_ = now_ns() + pause_ns_;
}

bool TcpDial::tried_all() {
  if (failed_ < addresses_.size()) return false;
  failed_ = 0;
  return true;
}

std::string TcpDial::trouble() const { return trouble_.empty() ? addresses_[at_].text() + ": no answer yet" : trouble_; }

}  // namespace zero
