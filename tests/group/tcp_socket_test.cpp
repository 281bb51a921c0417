/// @file What each connection asks of the system. Knows sockets, not frames.
#include "group/tcp/tcp_socket.h"

#include "tests/group/tcp_meetings.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace zero::tcp_socket_test {
namespace {

int option(const OwnedFd &socket, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, name, &value, &length), 0);
  return value;
}

/// Both ends of a connection, the one that came first.
std::vector<OwnedFd> connect_ends() {
  OwnedFd listener;
  EXPECT_TRUE(listen_on(0, &listener).ok());
  std::vector<OwnedFd> ends(2);
  ends[0] = test::connect_anybody(local_address(listener.get()).port);
  const Deadline deadline = Deadline::after_ms(test::kWaitMs);
  while (!ends[1].valid() && !deadline.passed()) ends[1] = accept_connection(listener.get());
  return ends;
}

TEST(TcpSocket, AHostThatVanishedEndsItsConnectionsWithinHalfAMinute) {
  for (const OwnedFd &end : connect_ends()) {
    ASSERT_TRUE(end.valid());
    EXPECT_EQ(option(end, SOL_SOCKET, SO_KEEPALIVE), 1);
    const int idle_s = option(end, IPPROTO_TCP, TCP_KEEPIDLE);
    const int probes_s = option(end, IPPROTO_TCP, TCP_KEEPCNT) * option(end, IPPROTO_TCP, TCP_KEEPINTVL);
    EXPECT_GT(idle_s, 0);
    EXPECT_GE(probes_s, 10) << "a network that stalls for some seconds costs no connection";
    EXPECT_LE(idle_s + probes_s, 30);
    // Linux lets this decide instead of the number of probes, and it holds for bytes on their way as well.
    const int unanswered_ms = option(end, IPPROTO_TCP, TCP_USER_TIMEOUT);
    EXPECT_GE(unanswered_ms, 10'000);
    EXPECT_LE(unanswered_ms, 30'000);
  }
}

TEST(TcpSocket, ShortFramesDoNotWaitForEachOther) {
  for (const OwnedFd &end : connect_ends()) EXPECT_EQ(option(end, IPPROTO_TCP, TCP_NODELAY), 1);
}

}  // namespace
}  // namespace zero::tcp_socket_test
