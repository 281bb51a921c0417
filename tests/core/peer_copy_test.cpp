/// @file Copies for another core: every byte and no other, at any size and address, either way; and when which way is taken.
#include "core/peer_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

namespace zero {
namespace {

constexpr int64_t kMost = 40'000;
constexpr int64_t kLarge = 16'384;
constexpr int64_t kLargeSlowNs = 10'000;
constexpr size_t kGuard = 64;

/// One that streams the next large copy.
PeerCopy streaming() {
  PeerCopy copy;
  copy.learn(kLarge, kLargeSlowNs);
  copy.learn(kLarge, kLargeSlowNs);
  return copy;
}

TEST(PeerCopy, CopiesEveryByteAndNoOther) {
  std::mt19937_64 random(1);
  std::vector<std::byte> from(kMost + 2 * kGuard);
  for (std::byte &byte : from) byte = static_cast<std::byte>(random());
  alignas(64) static std::byte out[kMost + 2 * kGuard];
  for (int trial = 0; trial < 3000; ++trial) {
    const auto nbytes = static_cast<int64_t>(trial % 3 == 0 ? random() % 200 : random() % kMost);
    // Mostly on a line, as staging is.
    const size_t at = kGuard + (trial % 4 == 0 ? random() % kGuard : 0);
    const size_t source = random() % kGuard;
    std::memset(out, trial, sizeof out);
    PeerCopy copy = trial % 2 == 0 ? PeerCopy() : streaming();
    copy.copy(out + at, from.data() + source, nbytes);
    ASSERT_TRUE(std::equal(out + at, out + at + nbytes, from.data() + source)) << nbytes;
    const auto untouched = [trial](std::byte byte) { return byte == static_cast<std::byte>(trial); };
    ASSERT_TRUE(std::all_of(out, out + at, untouched)) << nbytes;
    ASSERT_TRUE(std::all_of(out + at + nbytes, std::end(out), untouched)) << nbytes;
  }
}

TEST(PeerCopy, IsSeenByWhoSeesALaterStore) {
  constexpr int kRounds = 1000;
  constexpr size_t kCount = kLarge / sizeof(uint64_t) + 1;
  alignas(64) static uint64_t out[kCount];
  std::atomic<int> written{0};
  std::atomic<int> read{0};
  std::jthread reader([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (written.load(std::memory_order_acquire) < round) std::this_thread::yield();
      EXPECT_EQ(std::count(std::begin(out), std::end(out), static_cast<uint64_t>(round)), static_cast<std::ptrdiff_t>(kCount));
      read.store(round, std::memory_order_release);
    }
  });
  std::vector<uint64_t> from(kCount);
  PeerCopy copy = streaming();
  for (int round = 1; round <= kRounds; ++round) {
    std::fill(from.begin(), from.end(), static_cast<uint64_t>(round));
    if (!copy.streams()) copy = streaming();
    copy.copy(out, from.data(), static_cast<int64_t>(sizeof out));
    written.store(round, std::memory_order_release);
    while (read.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
}

TEST(PeerCopy, StreamsWhilePlainCopiesAreSlow) {
  PeerCopy copy;
  EXPECT_FALSE(copy.streams());
  copy.learn(kLarge, kLargeSlowNs);
  EXPECT_FALSE(copy.streams()) << "one may have been interrupted";
  copy.learn(kLarge, 100);
  copy.learn(kLarge, kLargeSlowNs);
  EXPECT_FALSE(copy.streams()) << "they were not in a row";
  copy.learn(kLarge, kLargeSlowNs);
  EXPECT_TRUE(copy.streams());
}

TEST(PeerCopy, TriesAPlainCopyAgain) {
  std::vector<std::byte> from(kLarge);
  alignas(64) static std::byte out[kLarge];
  PeerCopy copy = streaming();
  copy.copy(out, from.data(), 100);
  EXPECT_TRUE(copy.streams()) << "small copies do not count";
  int streamed = 0;
  for (; copy.streams() && streamed < 1000; ++streamed) copy.copy(out, from.data(), kLarge);
  EXPECT_GT(streamed, 10);
  EXPECT_LT(streamed, 1000);
  copy.learn(kLarge, kLargeSlowNs);
  EXPECT_TRUE(copy.streams()) << "once is enough where it was slow before";
  while (copy.streams()) copy.copy(out, from.data(), kLarge);
  copy.learn(kLarge, 100);
  copy.learn(kLarge, kLargeSlowNs);
  EXPECT_FALSE(copy.streams()) << "it was fast in between";
}

}  // namespace
}  // namespace zero
