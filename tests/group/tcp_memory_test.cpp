/// @file The transport over sockets without memory: nothing that has come is lost, and what is given back needs none.
#include "tests/core/failures.h"
#include "tests/group/tcp_ranks.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <new>

namespace zero::tcp_memory_test {
namespace {

using test::call;
using test::contains;
using test::own_hosts;
using test::TcpWorld;

/// Of both ranks.
std::shared_ptr<Transport> derive(Transport &transport) {
  std::shared_ptr<Transport> out;
  const Status status = test::run_task(transport.derive({0, 1}, 0, test::kWaitMs, &out));
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

/// One look of rank 0 for which there are only so many blocks of memory. True when they were too few.
bool look_without_memory(Transport &transport, int64_t allowed) {
  try {
    const test::FailingNew failing(allowed);
    (void)transport.peers().health();
    return false;
  } catch (const std::bad_alloc &) {
    return true;
  }
}

TEST(TcpMemory, WhatComesWhileThereIsNoMemoryIsKeptForItsGroup) {
  int64_t failed = 0;
  for (int64_t allowed = 0; allowed < 12; ++allowed) {
    TcpWorld world(own_hosts(2));
    const auto zero = world.join(0);
    const auto one = world.join(1);
    const Fingerprint fingerprint = call(OperationKind::all_gather, 1, 1);
    const std::vector<std::byte> data(9'000, std::byte{1});
    const std::vector<Offer> offers(2, {data.data(), 9'000});
    std::vector<Arrival> arrivals(2, {nullptr, 9'000});
    const std::shared_ptr<Transport> theirs = derive(*one);
    ASSERT_TRUE(theirs->rounds().start(&fingerprint, offers, arrivals).ok());
    failed += look_without_memory(*zero, allowed) ? 1 : 0;
    const std::shared_ptr<Transport> mine = derive(*zero);
    EXPECT_TRUE(test::round(*mine, &fingerprint, offers, arrivals, {}, 2'000).ok()) << allowed;
  }
  EXPECT_GT(failed, 3);
  EXPECT_LT(failed, 12);
}

TEST(TcpMemory, AFailureThatComesWhileThereIsNoMemoryIsNotLost) {
  int64_t failed = 0;
  for (int64_t allowed = 0; allowed < 8; ++allowed) {
    TcpWorld world(own_hosts(2));
    const auto zero = world.join(0);
    const auto one = world.join(1);
    one->peers().poison(Status::error(ZERO_E_ABORTED, "rank 1 has had enough of it"));
    failed += look_without_memory(*zero, allowed) ? 1 : 0;
    const Status status = zero->peers().health();
    EXPECT_EQ(status.code(), ZERO_E_ABORTED) << allowed;
    // Where there was none for the text, it has none.
    EXPECT_TRUE(*status.text() == '\0' || contains(status, "had enough")) << status.text();
  }
  EXPECT_GT(failed, 1);
  EXPECT_LT(failed, 8);
}

TEST(TcpMemory, WhatHasArrivedIsGivenBackWithoutMemory) {
  TcpWorld world(own_hosts(2));
  const auto zero = world.join(0);
  const auto one = world.join(1);
  const Fingerprint fingerprint = call(OperationKind::barrier, 1);
  const std::vector<Offer> offers(2);
  std::vector<Arrival> arrivals(2);
  ASSERT_TRUE(one->rounds().start(&fingerprint, offers, arrivals).ok());
  ASSERT_TRUE(zero->rounds().start(&fingerprint, offers, arrivals).ok());
  ASSERT_TRUE(test::await(*zero, [&](bool *ready) { return zero->rounds().poll(ready); }).ok());
  const test::FailingNew failing(0);
  EXPECT_NO_THROW(zero->rounds().consume());
}

}  // namespace
}  // namespace zero::tcp_memory_test
