/// @file Ranks as threads on pretended hosts, whose connections are pairs of sockets. Knows the transport over sockets and what it stands
/// on, not how ranks of real hosts meet.
#pragma once

#include "group/hierarchy_transport.h"
#include "group/tcp/tcp_transport.h"
#include "tests/group/host_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

inline std::array<OwnedFd, 2> socket_pair(int buffer_nbytes = 0) {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  for (const int fd : fds) {
    if (buffer_nbytes == 0) continue;
    EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_nbytes, sizeof buffer_nbytes), 0);
  }
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

/// Ranks that have met: rank r on pretended host hosts[r], as process 1000 + r.
class TcpWorld {
 public:
  explicit TcpWorld(const Hosts &hosts, int buffer_nbytes = 0) : peers_(hosts.size()), sockets_(hosts.size()) {
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      for (size_t peer = 0; peer < hosts.size(); ++peer) {
        const auto host = static_cast<uint64_t>(hosts[peer]);
        peers_[rank].push_back({700 + host, 1000 + static_cast<int64_t>(peer), "node" + std::to_string(host), nullptr});
      }
    }
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      for (size_t peer = 0; peer < rank; ++peer) {
        if (hosts[rank] != hosts[peer]) connect(rank, peer, buffer_nbytes);
      }
    }
  }

  std::shared_ptr<TcpTransport> join(int64_t rank) {
    auto &mine = peers_[static_cast<size_t>(rank)];
    std::vector<int64_t> members(mine.size());
    std::iota(members.begin(), members.end(), 0);
    auto mesh = std::make_shared<TcpMesh>(std::move(mine), rank);
    return std::make_shared<TcpTransport>(std::move(mesh), TcpTransport::kFirstNumber, std::move(members), rank);
  }

  /// The rank's end of a connection that the test speaks on itself.
  TcpLink &link(int64_t rank, int64_t peer) { return *peers_[static_cast<size_t>(rank)][static_cast<size_t>(peer)].link; }

  /// Ends all connections of a rank, as the end of its process does.
  void cut(int64_t rank) {
    for (const int socket : sockets_[static_cast<size_t>(rank)]) ::shutdown(socket, SHUT_RDWR);
  }

 private:
  void connect(size_t rank, size_t peer, int buffer_nbytes) {
    std::array<OwnedFd, 2> pair = socket_pair(buffer_nbytes);
    sockets_[rank].push_back(pair[0].get());
    sockets_[peer].push_back(pair[1].get());
    peers_[rank][peer].link = std::make_unique<TcpLink>(std::move(pair[0]));
    peers_[peer][rank].link = std::make_unique<TcpLink>(std::move(pair[1]));
  }

  std::vector<std::vector<TcpPeer>> peers_;
  std::vector<std::vector<int>> sockets_;  ///< as long as their rank has not left
};

/// Every rank on a host of its own.
inline Hosts own_hosts(int64_t size) {
  Hosts hosts(static_cast<size_t>(size));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

/// Runs body(rank, transport, world) on thread ranks that have met.
template <class Body>
void run_tcp_ranks(const Hosts &hosts, Body body, int buffer_nbytes = 0) {
  TcpWorld world(hosts, buffer_nbytes);
  run_thread_ranks(static_cast<int64_t>(hosts.size()), [&](int64_t rank) { body(rank, world.join(rank), world); });
}

/// What groups over hosts have: local transports between ranks of one host, sockets between hosts. Alone on every host: sockets only.
inline Status connect_tcp_hosts(TcpWorld &world, const std::string &name, int64_t rank, const Hosts &hosts,
                                std::shared_ptr<Transport> *out) {
  *out = world.join(rank);
  if ((*out)->capabilities().place.host_count == (*out)->size()) return {};
  const int64_t host = hosts[static_cast<size_t>(rank)];
  const auto begin = hosts.begin();
  const LocalOptions options{kHostsDeadlineMs, 16384};
  std::shared_ptr<Transport> near;
  ZERO_TRY(run_task(connect_local(name + ".near." + std::to_string(host), std::count(begin, begin + rank, host),
                                  std::count(begin, hosts.end(), host), options, &near)));
  *out = std::make_shared<HierarchyTransport>(std::move(near), std::move(*out), hosts);
  return {};
}

}  // namespace zero::test
