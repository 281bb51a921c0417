/// @file Copies for another core: every byte and no other, at any size and address, either way; and
/// when which way is taken.
#include "core/peer_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

namespace zero::peer_copy_test {
namespace {

constexpr int64_t kMost = 40'000;
constexpr int64_t kLarge = 16'384;
constexpr int64_t kSlowNs = 10'000;
constexpr int64_t kFastNs = 1000;
constexpr size_t kGuard = 64;

/// One that streams the next large copy.
PeerCopy streaming() {
  PeerCopy copy;
  copy.learn(kLarge, kSlowNs);
  copy.learn(kLarge, kSlowNs);
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

TEST(PeerCopy, StreamsWhilePlainCopiesAreSlow) {
  PeerCopy copy;
  EXPECT_FALSE(copy.streams());
  copy.learn(kLarge, kSlowNs);
  EXPECT_FALSE(copy.streams()) << "one may have been interrupted";
  copy.learn(kLarge, kFastNs);
  copy.learn(kLarge, kSlowNs);
  EXPECT_FALSE(copy.streams()) << "they were not in a row";
  copy.learn(kLarge, kSlowNs);
  EXPECT_TRUE(copy.streams());
}

/// Copies until streams() changes, of which each takes so long.
int copies_until_change(PeerCopy &copy, int64_t ns) {
  const bool before = copy.streams();
  int count = 0;
  for (; copy.streams() == before && count < 1000; ++count) copy.learn(kLarge, ns);
  return count;
}

TEST(PeerCopy, TriesAPlainCopyAgain) {
  PeerCopy copy = streaming();
  EXPECT_EQ(copies_until_change(copy, kFastNs), 64);
  copy.learn(kLarge, kSlowNs);
  EXPECT_TRUE(copy.streams()) << "once is enough where it was slow before";
  EXPECT_EQ(copies_until_change(copy, kFastNs), 64);
  copy.learn(kLarge, kFastNs);
  copy.learn(kLarge, kSlowNs);
  EXPECT_FALSE(copy.streams()) << "it was fast in between";
}

TEST(PeerCopy, LeavesStreamingThatGainsLittle) {
  PeerCopy copy = streaming();
  copy.learn(kLarge, kSlowNs * 6 / 10);
  copy.learn(kLarge, kSlowNs / 10);
  copy.learn(kLarge, kSlowNs * 6 / 10);
  EXPECT_TRUE(copy.streams()) << "not in a row";
  copy.learn(kLarge, kSlowNs * 6 / 10);
  EXPECT_FALSE(copy.streams());
  EXPECT_EQ(copies_until_change(copy, kSlowNs), 64 + 2) << "it is tried again after a while";
}

TEST(PeerCopy, LearnsFromLargeCopiesOnly) {
  std::vector<std::byte> from(kLarge);
  alignas(64) static std::byte out[kLarge];
  PeerCopy copy = streaming();
  for (int i = 0; i < 1000; ++i) copy.copy(out, from.data(), 1000);
  EXPECT_TRUE(copy.streams());
}

}  // namespace
}  // namespace zero::peer_copy_test
