/// @file The cache of small blocks: reuse by size class, large blocks passed through, threads.
#include "core/frame_cache.h"

#include "tests/core/failures.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace zero::frame_cache_test {
namespace {

TEST(FrameCache, ABlockGivenBackIsHandedOutAgainForItsSizeClass) {
  drop_cached_frames();
  void *first = cached_allocate(100);
  cached_free(first, 100);
  void *second = cached_allocate(128);
  EXPECT_EQ(first, second) << "100 and 128 bytes share a class";
  void *third = cached_allocate(128);
  EXPECT_NE(second, third);
  cached_free(second, 128);
  cached_free(third, 128);
}

TEST(FrameCache, BlocksAreLargeEnoughForEverySize) {
  for (std::size_t nbytes = 1; nbytes <= 10'000; nbytes += 37) {
    void *data = cached_allocate(nbytes);
    std::memset(data, 0xff, nbytes);
    cached_free(data, nbytes);
  }
  drop_cached_frames();
}

TEST(FrameCache, AWarmCacheAllocatesNothing) {
  drop_cached_frames();
  cached_free(cached_allocate(500), 500);
  const test::FailingNew failing(0);
  void *data = cached_allocate(500);
  cached_free(data, 500);
}

TEST(FrameCache, OutOfMemoryIsAnExceptionAlsoForLargeBlocks) {
  drop_cached_frames();
  const test::FailingNew failing(0);
  EXPECT_THROW(cached_allocate(500), std::bad_alloc);
  EXPECT_THROW(cached_allocate(100'000), std::bad_alloc);
}

TEST(FrameCache, DroppingGivesEverythingBack) {
  cached_free(cached_allocate(500), 500);
  drop_cached_frames();
  const test::FailingNew failing(0);
  EXPECT_THROW(cached_allocate(500), std::bad_alloc);
}

TEST(FrameCache, ThreadsNeverShareABlock) {
  test::run_thread_ranks(4, [](int64_t rank) {
    for (int i = 0; i < 5'000; ++i) {
      const std::size_t nbytes = 64 * static_cast<std::size_t>(1 + i % 10);
      auto *data = static_cast<unsigned char *>(cached_allocate(nbytes));
      std::memset(data, static_cast<int>(rank), nbytes);
      for (std::size_t at = 0; at < nbytes; at += 63) ASSERT_EQ(data[at], rank);
      cached_free(data, nbytes);
    }
  });
}

TEST(FrameCache, BlocksThatOneThreadTakesAndAnotherGivesBackComeAround) {
  drop_cached_frames();
  constexpr int kBlocks = 100;
  std::vector<void *> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(cached_allocate(300));
  std::thread other([&] {
    for (void *block : blocks) cached_free(block, 300);
  });
  other.join();
  const test::FailingNew failing(0);
  for (int i = 0; i < kBlocks; ++i) EXPECT_NE(cached_allocate(300), nullptr);
  for (void *block : blocks) cached_free(block, 300);
}

TEST(FrameCache, WorksAsAnAllocator) {
  const auto shared = std::allocate_shared<int>(CachedAllocator<int>(), 42);
  EXPECT_EQ(*shared, 42);
  EXPECT_TRUE(CachedAllocator<int>() == CachedAllocator<int>(CachedAllocator<char>()));
}

}  // namespace
}  // namespace zero::frame_cache_test
