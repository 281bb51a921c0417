/// @file Random numbers of the operating system: calls that a signal interrupts are repeated, and
/// those that are refused are not.
#include "core/system_random.h"

#include "tests/core/failures.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>

namespace zero {
namespace {

TEST(Random, NumbersDifferAlsoAfterAnInterruptedCall) {
  uint64_t first = 0;
  uint64_t second = 0;
  ASSERT_TRUE(random_u64(&first).ok());
  const test::FailingCall failing(test::SystemCall::getrandom, 1, EINTR);
  ASSERT_TRUE(random_u64(&second).ok());
  EXPECT_NE(first, second);
}

/// A sandbox refuses it each time.
TEST(Random, NumbersComeFromTheDeviceWhereTheCallIsRefused) {
  for (const int reason : {ENOSYS, EPERM, EINVAL}) {
    const test::FailingCall failing(test::SystemCall::getrandom, std::numeric_limits<int>::max(), reason);
    uint64_t first = 0;
    uint64_t second = 0;
    ASSERT_TRUE(random_u64(&first).ok());
    ASSERT_TRUE(random_u64(&second).ok());
    EXPECT_NE(first, second);
  }
}

}  // namespace
}  // namespace zero
