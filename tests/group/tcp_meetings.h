/// @file What tests of meetings over TCP share: ranks that try to meet on the loopback, and bare sockets of those who are none.
/// Knows sockets and ranks, not groups.
#pragma once

#include "core/clock.h"
#include "core/mapping.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_meeting.h"
#include "group/tcp/tcp_socket.h"
#include "tests/group/meetings.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace zero::test {

/// An id whose port this process listens on already.
inline std::string fresh_id(const std::string &host = "127.0.0.1") {
  std::string id;
  const Status status = make_tcp_id(host, 0, &id);
  EXPECT_TRUE(status.ok()) << status.text();
  return id;
}

/// An id whose port was free a moment ago. It is none of those that the system hands out by itself, which another rank could be given.
inline std::string unheld_id(const std::string &host = "127.0.0.1") {
  constexpr uint64_t kFirst = 16384;
  std::string id;
  for (int tries = 0; tries < 1000 && !make_tcp_id(host, static_cast<int64_t>(kFirst + fresh_number() % kFirst), &id).ok(); ++tries) {
  }
  take_listener(id);
  return id;
}

inline TcpPlace place_of(const std::string &id) {
  TcpPlace place;
  EXPECT_TRUE(parse_tcp_id(id, &place).ok());
  return place;
}

struct TcpAttempt {
  int64_t rank = 0;
  int64_t size = 0;
  uint64_t agree = 7;
  int64_t deadline_ms = 60'000;
  int64_t delay_ms = 0;
  uint64_t host_id = 1;
};

struct TcpResult {
  Status status;
  std::vector<TcpPeer> peers;
  uint64_t name = 0;
};

inline TcpResult attempt_to_meet(const std::string &id, const TcpAttempt &attempt) {
  sleep_ms(attempt.delay_ms);
  TcpResult result;
  const TcpTerms terms{id, attempt.rank, attempt.size, attempt.agree, attempt.deadline_ms, attempt.host_id};
  result.status = run_task(meet_over_tcp(terms, &result.peers, &result.name));
  return result;
}

/// Runs attempts at the same time and returns what each got.
inline std::vector<TcpResult> run_tcp_attempts(const std::string &id, const std::vector<TcpAttempt> &attempts) {
  std::vector<TcpResult> results(attempts.size());
  run_thread_ranks(static_cast<int64_t>(attempts.size()), [&](int64_t index) {
    const auto at = static_cast<size_t>(index);
    results[at] = attempt_to_meet(id, attempts[at]);
  });
  return results;
}

/// A connection of somebody who is no rank. Waits until somebody listens.
inline OwnedFd connect_anybody(uint16_t port) {
  TcpAddress address;
  address.kind = TcpAddress::Kind::ipv4;
  address.bytes = {127, 0, 0, 1};
  address.port = port;
  const Deadline deadline = Deadline::after_ms(kWaitMs);
  OwnedFd socket;
  while (!deadline.passed()) {
    if (begin_connection(address, &socket) != 0) continue;
    int state = EINPROGRESS;
    while (state == EINPROGRESS && !deadline.passed()) state = connection_state(socket.get());
    if (state == 0) return socket;
    socket.reset(-1);
    sleep_ms(1);
  }
  return socket;
}

/// The next frame, within the test's patience.
inline TcpLink::Received await_frame(TcpLink *link, std::vector<std::byte> *out) {
  const Deadline deadline = Deadline::after_ms(kWaitMs);
  for (;;) {
    link->flush();
    const TcpLink::Received received = link->receive(out);
    if (received != TcpLink::Received::nothing || deadline.passed()) return received;
    sleep_ms(1);
  }
}

inline std::span<const std::byte> bytes_of(const std::string &text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(const std::vector<std::byte> &bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

}  // namespace zero::test
