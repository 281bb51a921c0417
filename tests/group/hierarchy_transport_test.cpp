/// @file The transport of groups that span hosts, with ranks as threads: how its two ways share what a caller gives for both.
#include "core/clock.h"
#include "tests/group/host_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/group/transport_driver.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <barrier>
#include <memory>
#include <string>

namespace zero::hierarchy_transport_test {
namespace {

/// Rank 1 waits for rank 2, which is late, and then for rank 0, which does not come.
TEST(HierarchyTransport, DerivingWaitsForBothWaysNoLongerThanTheDeadline) {
  constexpr int64_t kDeadlineMs = 2000;
  constexpr int64_t kLateMs = 1500;
  const std::string name = "hierarchy." + std::to_string(::getpid());
  std::barrier ended(3);
  test::run_thread_ranks(3, [&](int64_t rank) {
    std::shared_ptr<Transport> transport;
    const Status met = test::connect_host_transport(name, rank, {0, 1, 1}, &transport);
    EXPECT_TRUE(met.ok()) << met.text();
    if (rank == 2) test::sleep_ms(kLateMs);
    const int64_t begin = now_ns();
    if (met.ok() && rank > 0) {
      std::shared_ptr<Transport> derived;
      const Status status = test::run_task(transport->derive({0, 1, 2}, 0, kDeadlineMs, &derived));
      EXPECT_EQ(status.code(), ZERO_E_TIMEOUT) << status.text();
      EXPECT_LT(now_ns() - begin, (kDeadlineMs + kLateMs / 2) * 1'000'000);
    }
    // Who leaves while the others wait would be the error.
    ended.arrive_and_wait();
  });
}

}  // namespace
}  // namespace zero::hierarchy_transport_test
