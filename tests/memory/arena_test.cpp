/// @file Arenas and accounting: the source of memory, its zeros, and equal counts of bytes
/// everywhere.
#include "memory/arena.h"

#include "tests/core/failures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

namespace zero::test::arena_test {
namespace {

struct Counted {
  int64_t private_nbytes = 0;
  int64_t shared_nbytes = 0;
  bool fails = false;
  uint64_t shift = 0;

  AllocatorHook hook() {
    return {[](uint64_t nbytes, uint64_t alignment, void *user) -> void * {
              auto *self = static_cast<Counted *>(user);
              if (self->fails) return nullptr;
              self->private_nbytes += static_cast<int64_t>(nbytes);
              auto *data = static_cast<char *>(std::aligned_alloc(alignment, nbytes));
              std::fill(data, data + nbytes, 'x');
              return data + self->shift;
            },
            [](void *data, uint64_t nbytes, void *user) {
              auto *self = static_cast<Counted *>(user);
              self->private_nbytes -= static_cast<int64_t>(nbytes);
              std::free(static_cast<char *>(data) - self->shift);
            },
            [](int64_t delta, void *user) { static_cast<Counted *>(user)->shared_nbytes += delta; }, this};
  }
};

bool all_zero(const Arena &arena) {
  return std::all_of(arena.data(), arena.data() + arena.nbytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(Arena, PrivateMemoryIsZeroAlignedAndCounted) {
  const AllocatorHook none;
  Accounting accounting;
  {
    Arena arena;
    ASSERT_TRUE(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 10'000, &arena).ok());
    EXPECT_EQ(arena.nbytes(), Arena::private_nbytes(10'000));
    EXPECT_TRUE(all_zero(arena));
    EXPECT_EQ(accounting.now(ZERO_MEMORY_STATE), arena.nbytes());
    EXPECT_EQ(accounting.now(ZERO_MEMORY_TOTAL), arena.nbytes());
    std::byte *first = arena.take(1);
    EXPECT_EQ(arena.take(100) - first, kViewAlignment);
    EXPECT_EQ(arena.take(1) - first, 3 * kViewAlignment);
    Arena moved = std::move(arena);
    EXPECT_EQ(arena.data(), nullptr);
    EXPECT_NE(moved.data(), nullptr);
  }
  EXPECT_EQ(accounting.now(ZERO_MEMORY_TOTAL), 0);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_TOTAL), Arena::private_nbytes(10'000));
}

TEST(Arena, TheHookProvidesPrivateMemoryAndIsToldOfSharedMemory) {
  Counted counted;
  const AllocatorHook hook = counted.hook();
  Accounting accounting;
  {
    Arena kept;
    Arena shared;
    ASSERT_TRUE(Arena::create_private({&hook, &accounting}, ZERO_MEMORY_STATE, 5'000, &kept).ok());
    ASSERT_TRUE(Arena::create_shared({&hook, &accounting}, ZERO_MEMORY_PARAM, 5'000, &shared).ok());
    EXPECT_TRUE(all_zero(kept));
    EXPECT_TRUE(all_zero(shared));
    EXPECT_EQ(counted.private_nbytes, accounting.now(ZERO_MEMORY_STATE));
    EXPECT_EQ(counted.shared_nbytes, accounting.now(ZERO_MEMORY_PARAM));
    EXPECT_NE(shared.mapping(), nullptr);
    EXPECT_EQ(kept.mapping(), nullptr);
  }
  EXPECT_EQ(counted.private_nbytes, 0);
  EXPECT_EQ(counted.shared_nbytes, 0);
}

TEST(Arena, AHookThatFailsOrMisalignsIsAnErrorAndNothingIsCounted) {
  Counted counted;
  const AllocatorHook hook = counted.hook();
  Accounting accounting;
  Arena arena;
  counted.fails = true;
  EXPECT_EQ(Arena::create_private({&hook, &accounting}, ZERO_MEMORY_STATE, 64, &arena).code(), ZERO_E_OUT_OF_MEMORY);
  counted.fails = false;
  counted.shift = 8;
  EXPECT_EQ(Arena::create_private({&hook, &accounting}, ZERO_MEMORY_STATE, 64, &arena).code(), ZERO_E_OUT_OF_MEMORY);
  EXPECT_EQ(counted.private_nbytes, 0);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_TOTAL), 0);
}

TEST(Arena, NoBytesNeedNoMemory) {
  const AllocatorHook none;
  Accounting accounting;
  Arena arena;
  ASSERT_TRUE(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 0, &arena).ok());
  EXPECT_EQ(arena.data(), nullptr);
  ASSERT_TRUE(Arena::create_shared({&none, &accounting}, ZERO_MEMORY_STATE, 0, &arena).ok());
  EXPECT_NE(arena.data(), nullptr);
}

TEST(Arena, OnlyWhatOtherProcessesReadNeedsAFile) {
  const AllocatorHook none;
  Accounting accounting;
  for (const bool for_threads : {false, true}) {
    Arena arena;
    ASSERT_TRUE(Arena::create_shared({&none, &accounting, for_threads}, ZERO_MEMORY_PARAM, 20'000, &arena).ok());
    EXPECT_TRUE(all_zero(arena));
    EXPECT_EQ(arena.mapping()->fd() < 0, for_threads);
    EXPECT_EQ(accounting.now(ZERO_MEMORY_PARAM), 20'000);
  }
  EXPECT_EQ(accounting.now(ZERO_MEMORY_PARAM), 0);
}

TEST(Arena, MoreMemoryThanThereIsIsAnError) {
  const AllocatorHook none;
  Accounting accounting;
  Arena arena;
  EXPECT_EQ(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, int64_t{1} << 60, &arena).code(), ZERO_E_OUT_OF_MEMORY);
}

/// How often creation calls madvise: huge pages are advised, then all pages wanted.
constexpr int kCalls = 2;

TEST(Arena, KernelsThatCannotPopulateGetTheirPagesTouched) {
  const AllocatorHook none;
  Accounting accounting;
  for (const int reason : {EINVAL, EINTR}) {
    Arena kept;
    Arena shared;
    {
      const FailingCall old_kernel(SystemCall::madvise, kCalls, reason);
      ASSERT_TRUE(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 20'000, &kept).ok());
    }
    const FailingCall old_kernel(SystemCall::madvise, kCalls, reason);
    ASSERT_TRUE(Arena::create_shared({&none, &accounting}, ZERO_MEMORY_PARAM, 20'000, &shared).ok());
    EXPECT_TRUE(all_zero(kept));
    EXPECT_TRUE(all_zero(shared));
  }
}

TEST(Arena, PagesThatCannotBeHadAreAnErrorAndNothingIsCounted) {
  const AllocatorHook none;
  Accounting accounting;
  Arena arena;
  {
    const FailingCall short_of_memory(SystemCall::madvise, kCalls, ENOMEM);
    EXPECT_EQ(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 64, &arena).code(), ZERO_E_OUT_OF_MEMORY);
  }
  {
    const FailingCall short_of_memory(SystemCall::madvise, kCalls, ENOMEM);
    EXPECT_EQ(Arena::create_shared({&none, &accounting}, ZERO_MEMORY_STATE, 64, &arena).code(), ZERO_E_OUT_OF_MEMORY);
  }
  const FailingCall no_file(SystemCall::memfd_create, 1, EMFILE);
  EXPECT_FALSE(Arena::create_shared({&none, &accounting}, ZERO_MEMORY_STATE, 64, &arena).ok());
  EXPECT_EQ(arena.data(), nullptr);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_TOTAL), 0);
}

TEST(Arena, ReplacingAnArenaReturnsWhatItHeld) {
  const AllocatorHook none;
  Accounting accounting;
  Arena first;
  Arena second;
  ASSERT_TRUE(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 10'000, &first).ok());
  ASSERT_TRUE(Arena::create_private({&none, &accounting}, ZERO_MEMORY_STATE, 20'000, &second).ok());
  const std::byte *data = second.data();
  first = std::move(second);
  EXPECT_EQ(first.data(), data);
  EXPECT_EQ(accounting.now(ZERO_MEMORY_STATE), Arena::private_nbytes(20'000));
  Arena &same = first;
  first = std::move(same);
  EXPECT_EQ(first.data(), data);
}

TEST(Accounting, PeaksAreThoseOfOneMoment) {
  Accounting accounting;
  accounting.add(ZERO_MEMORY_PARAM, 100);
  accounting.add(ZERO_MEMORY_PARAM, -100);
  accounting.add(ZERO_MEMORY_GRAD, 60);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_PARAM), 100);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_GRAD), 60);
  EXPECT_EQ(accounting.peak(ZERO_MEMORY_TOTAL), 100);
  EXPECT_EQ(accounting.now(ZERO_MEMORY_TOTAL), 60);
  EXPECT_FALSE(Accounting::valid(-1));
  EXPECT_FALSE(Accounting::valid(Accounting::kCategories));
}

TEST(Accounting, ThreadsLoseNoBytes) {
  Accounting accounting;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10'000; ++k) {
          accounting.add(ZERO_MEMORY_GRAD, 3);
          accounting.add(ZERO_MEMORY_GRAD, -2);
        }
      });
    }
  }
  EXPECT_EQ(accounting.now(ZERO_MEMORY_TOTAL), 40'000);
  EXPECT_GE(accounting.peak(ZERO_MEMORY_GRAD), 40'000);
}

}  // namespace
}  // namespace zero::test::arena_test
