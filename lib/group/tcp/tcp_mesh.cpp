/// @file Sorting frames by their groups, and the end of connections.
#include "group/tcp/tcp_mesh.h"

#include "core/clock.h"
#include "group/ready_sockets.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <new>

namespace zero {
namespace {

/// Most bytes kept per connection for groups that this rank has not made. A peer may be ahead by
/// some hundreds of rounds, messages and farewells.
constexpr int64_t kMostEarlyNbytes = int64_t{8} << 20;
constexpr int64_t kFrameNbytes = 64;  ///< memory that a kept frame takes beside its bytes
constexpr size_t kMostSpares = 32;
constexpr int64_t kMostSpareNbytes = 128 << 10;
constexpr int64_t kLingerMs = 100;
constexpr int64_t kPauseNs = 200'000;

}  // namespace

TcpHead TcpFrame::head() const {
  TcpHead head;
  std::memcpy(&head, bytes_.data(), sizeof head);
  return head;
}

bool TcpFrame::valid() const { return bytes_.size() >= sizeof(TcpHead) && kind() >= TcpKind::round && kind() <= TcpKind::answer; }

TcpMesh::TcpMesh(std::vector<TcpPeer> peers, int64_t rank) : rank_(rank), ways_(peers.size()) {
  for (size_t i = 0; i < peers.size(); ++i) {
    ways_[i].peer = std::move(peers[i]);
    if (ways_[i].peer.link != nullptr) ways_[i].state = State::open;
  }
  spares_.reserve(kMostSpares);
}

TcpMesh::~TcpMesh() {
  const Deadline deadline = Deadline::after_ms(kLingerMs);
  while (!flush() && !deadline.passed()) {
    const timespec pause = {0, kPauseNs};
    ::nanosleep(&pause, nullptr);
  }
  // Closing a socket with unread bytes resets the connection, and the peer may lose data that was
  // sent to it.
  std::vector<std::byte> unread;
  for (Way &way : ways_) {
    if (way.peer.link == nullptr) continue;
    ::shutdown(way.peer.link->socket(), SHUT_WR);
    try {
      while (way.peer.link->receive(&unread) == TcpLink::Received::frame) continue;
    } catch (const std::bad_alloc &) {
      // The peer sees a reset instead of an end.
    }
  }
}

void TcpMesh::send(int64_t rank, TcpKind kind, uint64_t group, std::span<const std::byte> content, std::span<const std::byte> rest) {
  TcpLink *link = way(rank).peer.link.get();
  if (link == nullptr) return;
  const TcpHead head = {kind, 0, group};
  link->send({bytes_of(head), content, rest});
}

bool TcpMesh::flushed(int64_t rank) {
  TcpLink *link = way(rank).peer.link.get();
  return link == nullptr || link->flush();
}

bool TcpMesh::flush() {
  bool all = true;
  for (int64_t rank = 0; rank < size(); ++rank) all = flushed(rank) && all;
  return all;
}

/// One poll() of all sockets costs less than a read of each.
void TcpMesh::progress() {
  flush();
  std::array<pollfd, 64> sockets;
  std::array<int64_t, 64> sources;
  for (int64_t rank = 0; rank < size();) {
    nfds_t count = 0;
    for (; rank < size() && count < sockets.size(); ++rank) {
      Way &way = this->way(rank);
      if (way.fresh) receive(rank);
      if (way.peer.link == nullptr) continue;
      sockets[count] = {way.peer.link->socket(), POLLIN, 0};
      sources[count++] = rank;
    }
    if (!find_ready({sockets.data(), count})) continue;
    for (nfds_t i = 0; i < count; ++i) {
      if (sockets[i].revents != 0) receive(sources[i]);
    }
  }
}

void TcpMesh::receive(int64_t source) {
  Way &way = this->way(source);
  if (way.peer.link == nullptr) return;
  way.fresh = true;
  TcpLink::Received received = TcpLink::Received::frame;
  while (received == TcpLink::Received::frame) {
    if (!way.unsorted) {
      std::vector<std::byte> bytes = spare();
      received = way.peer.link->receive(&bytes);
      way.frame = TcpFrame(std::move(bytes));
      way.unsorted = received == TcpLink::Received::frame;
    }
    if (!way.unsorted) continue;
    const bool sorted = sort(source, std::move(way.frame));
    way.unsorted = false;
    if (!sorted) return end(source, State::breached);
  }
  way.fresh = false;
  give_back(std::move(way.frame));
  if (received == TcpLink::Received::ended) end(source, State::ended);
}

void TcpMesh::end(int64_t source, State state) {
  way(source).state = state;
  way(source).fresh = false;
  way(source).peer.link.reset();
}

bool TcpMesh::sort(int64_t source, TcpFrame &&frame) {
  if (!frame.valid()) return false;
  if (frame.kind() == TcpKind::query) {
    reply(source, frame.group());
    return true;
  }
  if (const auto member = members_.find(frame.group()); member != members_.end()) return member->second->on_frame(source, std::move(frame));
  return former_.contains(frame.group()) || keep(source, std::move(frame));
}

bool TcpMesh::keep(int64_t source, TcpFrame &&frame) {
  Way &way = this->way(source);
  const int64_t nbytes = frame.nbytes() + kFrameNbytes;
  if (way.early_nbytes + nbytes > kMostEarlyNbytes) return false;
  early_[frame.group()].emplace_back(source, std::move(frame));
  way.early_nbytes += nbytes;
  return true;
}

void TcpMesh::reply(int64_t source, uint64_t group) {
  PeerStatus answer;
  if (former_.contains(group)) answer.state = PeerStatus::gone;
  if (const auto member = members_.find(group); member != members_.end()) answer = member->second->answer();
  send(source, TcpKind::answer, group, bytes_of(answer));
}

void TcpMesh::enroll(uint64_t number, TcpMember *member) {
  members_[number] = member;
  auto early = early_.extract(number);
  if (early.empty()) return;
  for (auto &[source, frame] : early.mapped()) {
    way(source).early_nbytes -= frame.nbytes() + kFrameNbytes;
    if (way(source).state == State::breached) continue;
    if (!member->on_frame(source, std::move(frame))) end(source, State::breached);
  }
}

void TcpMesh::forget(uint64_t number) {
  members_.erase(number);
  former_.insert(number);
}

std::vector<std::byte> TcpMesh::spare() {
  if (spares_.empty()) return {};
  std::vector<std::byte> bytes = std::move(spares_.back());
  spares_.pop_back();
  return bytes;
}

void TcpMesh::give_back(TcpFrame frame) noexcept {
  if (spares_.size() < kMostSpares && frame.nbytes() <= kMostSpareNbytes) spares_.push_back(frame.take_bytes());
}

}  // namespace zero
