/// @file Accepting connections. Connections without a first frame are limited in number and bytes,
/// and are read before they are closed.
#include "group/tcp/tcp_accept_queue.h"

#include "group/end_listening.h"
#include "group/ready_sockets.h"
#include "group/tcp/tcp_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace zero {

namespace {

/// True if the error concerns one pending connection: Linux reports it in accept(). The next
/// connection may be fine.
bool ended_before_accept(int error) {
  constexpr std::array kOfOneConnection = {ECONNABORTED, EINTR,   EPROTO,       ENOPROTOOPT, ENETDOWN,
                                           ENETUNREACH,  ENONET,  EHOSTDOWN,    EHOSTUNREACH, EOPNOTSUPP};
  return std::find(kOfOneConnection.begin(), kOfOneConnection.end(), error) != kOfOneConnection.end();
}

}  // namespace

uint16_t TcpAcceptQueue::port() const { return local_address(listener_.get()).port; }

void TcpAcceptQueue::close() { end_listening(&listener_); }

Status TcpAcceptQueue::look(std::vector<TcpArrival> *out) {
  // Limits the connections per call, so that a flood of them does not hold the caller.
  constexpr int kMostAtATime = 256;
  out->clear();
  for (int i = 0; i < kMostAtATime; ++i) {
    OwnedFd socket = accept_connection(listener_.get());
    if (!socket.valid()) {
      ZERO_CHECK(errno != EMFILE && errno != ENFILE, ZERO_E_SYSTEM, "too few file descriptors for the ranks to meet: %s",
                 std::strerror(errno));
      if (errno == EAGAIN) break;
      ZERO_CHECK(ended_before_accept(errno), ZERO_E_SYSTEM, "cannot accept the connections of other ranks: %s", std::strerror(errno));
      continue;
    }
    strangers_.push_back(std::make_unique<TcpLink>(std::move(socket)));
    strangers_.back()->limit(longest_);
    if (strangers_.size() > kMostStrangers) receive(out);
    if (strangers_.size() > kMostStrangers) strangers_.pop_front();
  }
  receive(out);
  return {};
}

void TcpAcceptQueue::receive(std::vector<TcpArrival> *out) {
  std::vector<pollfd> polls;
  polls.reserve(strangers_.size());
  for (const auto &stranger : strangers_) polls.push_back({stranger->socket(), POLLIN, 0});
  if (!find_ready(polls)) return;
  std::deque<std::unique_ptr<TcpLink>> silent;
  for (size_t i = 0; i < polls.size(); ++i) {
    TcpArrival arrival{std::move(strangers_[i]), {}};
    const bool look = polls[i].revents != 0;
    const TcpLink::Received received = look ? arrival.link->receive(&arrival.frame) : TcpLink::Received::nothing;
    if (received == TcpLink::Received::nothing) silent.push_back(std::move(arrival.link));
    if (received != TcpLink::Received::frame) continue;
    arrival.link->limit(TcpLink::kLongestFrame);
    out->push_back(std::move(arrival));
  }
  strangers_ = std::move(silent);
}

}  // namespace zero
