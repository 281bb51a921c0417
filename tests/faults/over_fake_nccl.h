/// @file Tests over the NCCL of threads and emulated devices: each begins with both as they are in the beginning, and leaves nothing of
/// them.
#pragma once

#include "group/nccl/nccl_comm.h"
#include "tests/group/fake_nccl.h"
#include "tests/group/nccl_ranks.h"
#include "tests/memory/emulated_cuda.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace zero::test {

/// `Test`: testing::Test, or what derives from it.
template <class Test>
class OverFakeNccl : public Test {
 protected:
  void SetUp() override {
    fake_nccl_reset();
    emulated_late(0);
    emulated_fail_from(-1);
    objects_ = emulated_objects();
  }
  void TearDown() override {
    fake_nccl_reset();
    for (int wait = 0; wait < 10'000 && nccl_quarantined() != 0; ++wait) sleep_ms(1);
    EXPECT_EQ(nccl_quarantined(), 0);
    expect_nothing_left(objects_);
  }

  int64_t objects_ = 0;
};

}  // namespace zero::test
