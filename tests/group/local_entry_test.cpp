/// @file Memory of a rank that peers enter before they write there, until its owner closes it. Ranks are threads.
#include "tests/group/local_ranks.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>

namespace zero::local_entry_test {
namespace {

using test::connect;
using test::fresh_name;
using test::run_thread_ranks;

class LocalEntryOfSize : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LocalEntryOfSize, testing::Range<int64_t>(2, 9));

TEST_P(LocalEntryOfSize, MemoryThatARankHasClosedIsEnteredByNobody) {
  const int64_t size = GetParam();
  const std::string name = fresh_name();
  std::barrier all(size);
  run_thread_ranks(size, [&](int64_t rank) {
    const auto transport = connect(name, rank, size);
    EXPECT_TRUE(transport->enter_memory().ok());
    all.arrive_and_wait();
    EXPECT_EQ(transport->entries(), static_cast<uint64_t>(size - 1));
    all.arrive_and_wait();
    if (rank == size - 1) {
      EXPECT_EQ(transport->close_memory(), static_cast<uint64_t>(size - 1));
    }
    all.arrive_and_wait();
    if (rank < size - 1) {
      EXPECT_EQ(transport->enter_memory().code(), ZERO_E_PEER_FAILED);
    }
    all.arrive_and_wait();
    // Nobody counts ranks that went back.
    EXPECT_EQ(transport->close_memory(), static_cast<uint64_t>(size - 1));
  });
}

/// Each of many times one word decides alone: a rank has entered, or its peer has closed the memory before.
TEST(LocalEntry, AnEntryIsCountedOrRefused) {
  for (int time = 0; time < 200; ++time) {
    const std::string name = fresh_name();
    std::barrier both(2);
    std::atomic<bool> entered{false};
    uint64_t counted = 0;
    run_thread_ranks(2, [&](int64_t rank) {
      const auto transport = connect(name, rank, 2);
      both.arrive_and_wait();
      if (rank == 0) entered = transport->enter_memory().ok();
      if (rank == 1) counted = transport->close_memory();
      both.arrive_and_wait();
      EXPECT_EQ(counted == 1, entered);
    });
  }
}

}  // namespace
}  // namespace zero::local_entry_test
