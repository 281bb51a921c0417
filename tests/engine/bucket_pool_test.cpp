/// @file The pool of buckets: which buffers are taken again.
#include "engine/gradients/bucket_pool.h"

#include "memory/accounting.h"

#include <gtest/gtest.h>
#include <zero/stats.h>

#include <set>
#include <vector>

namespace zero::bucket_pool_test {
namespace {

constexpr int64_t kNbytes = 4096;

struct PoolWorld {
  AllocatorHook hook;
  Accounting accounting;
  BucketPool pool;
  Status open(const std::vector<int64_t> &buckets, int64_t held, int64_t limit = 0) {
    return pool.open({&hook, &accounting}, buckets, held, limit);
  }
};

TEST(BucketPool, BuffersThatPeersReadInPlaceAreTakenAgainFirst) {
  PoolWorld world;
  BucketPool &pool = world.pool;
  ASSERT_TRUE(world.open({kNbytes, kNbytes, kNbytes}, 2).ok());
  std::byte *shared[] = {pool.take(kNbytes), pool.take(kNbytes)};
  ASSERT_NE(shared[1], nullptr);
  EXPECT_EQ(pool.take(kNbytes), nullptr);
  std::byte *grown[] = {nullptr, nullptr};
  for (std::byte *&buffer : grown) ASSERT_TRUE(pool.grow(kNbytes, &buffer).ok());
  for (std::byte *buffer : {shared[0], shared[1], grown[0], grown[1]}) pool.give_back(buffer);
  const std::set<std::byte *> first = {pool.take(kNbytes), pool.take(kNbytes)};
  EXPECT_EQ(first, (std::set<std::byte *>{shared[0], shared[1]}));
  const std::set<std::byte *> then = {pool.take(kNbytes), pool.take(kNbytes)};
  EXPECT_EQ(then, (std::set<std::byte *>{grown[0], grown[1]}));
  EXPECT_EQ(pool.take(kNbytes), nullptr);
  EXPECT_EQ(pool.grow_count(), 2);
}

/// One table that is much larger than all else costs one buffer of its size.
TEST(BucketPool, SmallBucketsHaveSmallBuffers) {
  const std::vector<int64_t> buckets = {100 * kNbytes, 4 * kNbytes, 3 * kNbytes, 2 * kNbytes, kNbytes, kNbytes / 2};
  EXPECT_EQ(BucketPool::nbytes(buckets, 2, 0), (100 + 2 * 4 + 1) * kNbytes);
  PoolWorld world;
  ASSERT_TRUE(world.open(buckets, 2).ok());
  EXPECT_EQ(world.pool.first_nbytes(), 109 * kNbytes);
  std::byte *table = world.pool.take(100 * kNbytes);
  std::byte *small = world.pool.take(kNbytes / 2);
  EXPECT_NE(world.pool.take(3 * kNbytes), nullptr);
  EXPECT_NE(world.pool.take(4 * kNbytes), nullptr);
  EXPECT_EQ(world.pool.take(2 * kNbytes), nullptr) << "none of the rest is large enough";
  EXPECT_NE(table, nullptr);
  EXPECT_NE(small, nullptr);
  world.pool.give_back(table);
  EXPECT_EQ(world.pool.take(2 * kNbytes), table) << "a larger one is better than a new one";
}

TEST(BucketPool, GrowsByWhatIsMissingAndReplacesWhatIsTooSmall) {
  PoolWorld world;
  ASSERT_TRUE(world.open({8 * kNbytes}, 1).ok());
  ASSERT_NE(world.pool.take(8 * kNbytes), nullptr);
  std::byte *grown = nullptr;
  ASSERT_TRUE(world.pool.grow(kNbytes, &grown).ok());
  EXPECT_EQ(world.accounting.now(ZERO_MEMORY_GRAD_POOL), 9 * kNbytes);
  world.pool.give_back(grown);
  EXPECT_EQ(world.pool.take(2 * kNbytes), nullptr);
  ASSERT_TRUE(world.pool.grow(2 * kNbytes, &grown).ok());
  EXPECT_EQ(world.accounting.now(ZERO_MEMORY_GRAD_POOL), 10 * kNbytes);
  EXPECT_EQ(world.pool.grow_count(), 2);
}

/// Any order fits as many buckets as the limit is large.
TEST(BucketPool, WithALimitAllBuffersAreAsLargeAsTheLargestBucket) {
  const std::vector<int64_t> buckets = {2 * kNbytes, kNbytes / 8, kNbytes / 64};
  PoolWorld world;
  ASSERT_TRUE(world.open(buckets, 2, 5 * kNbytes).ok());
  EXPECT_EQ(world.pool.first_nbytes(), 4 * kNbytes);
  EXPECT_TRUE(world.pool.at_limit());
  ASSERT_NE(world.pool.take(1), nullptr);
  EXPECT_NE(world.pool.take(2 * kNbytes), nullptr);
  std::byte *grown = nullptr;
  EXPECT_EQ(world.pool.grow(1, &grown).code(), ZERO_E_POOL_LIMIT);
  EXPECT_EQ(PoolWorld().open(buckets, 2, kNbytes).code(), ZERO_E_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace zero::bucket_pool_test
