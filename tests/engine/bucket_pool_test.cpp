/// @file The pool of buckets: which buffers are taken again.
#include "engine/bucket_pool.h"

#include "memory/accounting.h"

#include <gtest/gtest.h>

#include <set>

namespace zero {
namespace {

constexpr int64_t kNbytes = 4096;

TEST(BucketPool, BuffersThatPeersReadInPlaceAreTakenAgainFirst) {
  AllocatorHook hook;
  Accounting accounting;
  BucketPool pool;
  ASSERT_TRUE(pool.open({&hook, &accounting}, kNbytes, 2, 0).ok());
  std::byte *shared[] = {pool.take(), pool.take()};
  ASSERT_NE(shared[1], nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  std::byte *grown[] = {nullptr, nullptr};
  for (std::byte *&buffer : grown) ASSERT_TRUE(pool.grow(&buffer).ok());
  for (std::byte *buffer : {shared[0], shared[1], grown[0], grown[1]}) pool.give_back(buffer);
  const std::set<std::byte *> first = {pool.take(), pool.take()};
  EXPECT_EQ(first, (std::set<std::byte *>{shared[0], shared[1]}));
  const std::set<std::byte *> then = {pool.take(), pool.take()};
  EXPECT_EQ(then, (std::set<std::byte *>{grown[0], grown[1]}));
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.grow_count(), 2);
}

}  // namespace
}  // namespace zero
