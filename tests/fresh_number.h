/// @file A number that no other test uses: for names. Knows nothing of what is named.
#pragma once

#include "core/system_random.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace zero::test {

inline uint64_t fresh_number() {
  uint64_t number = 0;
  const Status status = random_u64(&number);
  EXPECT_TRUE(status.ok()) << status.text();
  return number;
}

}  // namespace zero::test
