/// @file Hashes on a device: the function that hash.cu documents, computed here in another way, for
/// bytes at any address. Every bit counts.
#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <set>

namespace zero::kernels::device_hash_test {
namespace {

using test::DeviceMemory;
using test::Random;

__extension__ using Wide = unsigned __int128;

uint64_t expected_hash(const std::vector<uint8_t> &bytes) {
  constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  Random random(0);
  Wide sum = 0;
  for (size_t begin = 0; begin < bytes.size(); begin += 4) {
    uint64_t word = 0;
    for (size_t i = std::min(begin + 4, bytes.size()); i > begin; --i) word = word << 8 | bytes[i - 1];
    const uint64_t bits = random.next() >> 3;
    sum = (sum + Wide{bits == 0 || bits == kPrime ? 1 : bits} * word) % kPrime;
  }
  return static_cast<uint64_t>(sum);
}

std::vector<uint8_t> random_bytes(Random &random, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  const int64_t kind = random.below(4);
  for (uint8_t &byte : bytes) byte = kind == 0 ? 0xff : kind == 1 ? 0 : static_cast<uint8_t>(random.next());
  return bytes;
}

class DeviceHashes : public test::DeviceKernels {
 protected:
  /// The hashes of many ranges, each at an address of its own.
  std::vector<uint64_t> hashes(std::vector<std::vector<uint8_t>> &ranges) {
    DeviceMemory memory;
    std::vector<Bytes> list;
    for (std::vector<uint8_t> &range : ranges) list.push_back({memory.place(range, random_.below(8)), std::ssize(range)});
    std::vector<uint64_t> result(ranges.size());
    const Bytes *there = memory.place(list);
    uint64_t *out = memory.place(result);
    memory.upload();
    EXPECT_EQ(kernels_->hash(0, there, std::ssize(list), out, memory.stream()), 0);
    memory.download();
    return result;
  }

  Random random_{74};
};

TEST_F(DeviceHashes, AreTheStatedSums) {
  static constexpr int64_t kCounts[] = {0, 1, 2, 3, 4, 5, 7, 8, 1023, 1024, 1025, 65'535, 65'536, 1 << 20};
  for (int64_t i = 0; i < test::cases(100); ++i) {
    std::vector<std::vector<uint8_t>> ranges;
    for (const int64_t count : kCounts) {
      if (count < 65'535 || i % 20 == 0) ranges.push_back(random_bytes(random_, count));
    }
    for (int64_t k = 0; k < 20; ++k) ranges.push_back(random_bytes(random_, random_.below(5000)));
    const std::vector<uint64_t> actual = hashes(ranges);
    for (size_t k = 0; k < ranges.size(); ++k) ASSERT_EQ(actual[k], expected_hash(ranges[k])) << ranges[k].size() << " bytes";
  }
}

/// These two words were chosen so that their sum is a multiple of p.
TEST_F(DeviceHashes, AreRemainders) {
  std::vector<std::vector<uint8_t>> ranges = {{0x76, 0x3c, 0x9e, 0x58, 0x85, 0xc7, 0xe5, 0x04}};
  ASSERT_EQ(expected_hash(ranges[0]), 0U);
  EXPECT_EQ(hashes(ranges)[0], 0U);
}

TEST_F(DeviceHashes, OfRangesThatDifferInOneBitAllDiffer) {
  for (const int64_t count : {1, 6, 301}) {
    const std::vector<uint8_t> bytes = random_bytes(random_, count);
    std::vector<std::vector<uint8_t>> ranges(static_cast<size_t>(8 * count) + 1, bytes);
    for (size_t bit = 0; bit < static_cast<size_t>(8 * count); ++bit) ranges[bit][bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    const std::vector<uint64_t> all = hashes(ranges);
    EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), all.size()) << count << " bytes";
  }
}

/// Sums modulo a power of two would not detect these: the highest bit of two words.
TEST_F(DeviceHashes, OfRangesThatDifferInTwoHighestBitsAllDiffer) {
  std::vector<std::vector<uint8_t>> ranges;
  for (size_t a = 0; a < 60; ++a) {
    for (size_t b = a + 1; b < 60; ++b) {
      ranges.emplace_back(240);
      for (const size_t word : {a, b}) ranges.back()[4 * word + 3] = 0x80;
    }
  }
  const std::vector<uint64_t> all = hashes(ranges);
  EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), all.size());
}

}  // namespace
}  // namespace zero::kernels::device_hash_test
