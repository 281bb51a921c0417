/// @file The 16 bits that a bf16 parameter lacks of its fp32 master: round trips and roundings.
#include "kernels/kernels.h"

#include "random.h"
#include "storage.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

namespace zero::kernels::remainder_test {
namespace {

constexpr int64_t kBlock = 1 << 16;

void check_block(const Table &table, uint32_t first) {
  std::vector<float> values(kBlock);
  std::vector<float> back(kBlock);
  std::vector<uint16_t> upper(kBlock);
  std::vector<uint16_t> lower(kBlock);
  for (uint32_t i = 0; i < kBlock; ++i) values[i] = std::bit_cast<float>(first + i);
  table.split(upper.data(), lower.data(), values.data(), kBlock);
  table.join(back.data(), upper.data(), lower.data(), kBlock);
  int64_t wrong = 0;
  for (uint32_t i = 0; i < kBlock; ++i) {
    const uint32_t expected = std::isnan(values[i]) ? 0x7fc00000U : first + i;
    if (std::bit_cast<uint32_t>(back[i]) != expected) ++wrong;
  }
  ASSERT_EQ(wrong, 0) << table.target << " patterns from " << first;
}

TEST(Remainder, EveryFp32PatternComesBack) {
  test::Random random(60);
  const bool full = zero::test::full_tests();
  const int64_t blocks = full ? 0x10000 : 200;
  for (int64_t i = 0; i < blocks; ++i) {
    // By default zeros, subnormals, the ends of both signs and NaNs, then random upper halves; each
    // with all lower halves, ties included.
    const uint32_t ends[] = {0, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, 0xff7f, 0xff80, 0xffff, 0x007f, 0x0080, 0x3f80};
    const uint32_t upper = full ? static_cast<uint32_t>(i) : i < 11 ? ends[i] : static_cast<uint32_t>(random.below(0x10000));
    for (const Table *table : supported()) {
      if (full && table != supported().front() && table != supported().back()) continue;
      check_block(*table, upper << 16);
    }
  }
  std::printf("%lld of 2^32 patterns\n", static_cast<long long>(blocks) * kBlock);
}

TEST(Remainder, TheUpperHalfIsTheNearestBf16WithTiesAwayFromZero) {
  test::Random random(61);
  std::vector<float> values;
  for (int64_t i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random.special_bits(32, 23));
    values.push_back(std::bit_cast<float>(i % 2 == 0 ? bits : (bits & 0xffff0000U) | 0x8000));
  }
  for (const Table *table : supported()) {
    std::vector<uint16_t> upper(values.size());
    std::vector<uint16_t> lower(values.size());
    table->split(upper.data(), lower.data(), values.data(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto half = std::bit_cast<float>(static_cast<uint32_t>(upper[i]) << 16);
      if (std::isnan(values[i])) {
        ASSERT_EQ(upper[i], 0x7fc0);
        ASSERT_EQ(lower[i], 0);
      } else if (std::isinf(values[i])) {
        ASSERT_EQ(half, values[i]);
      } else {
        ASSERT_EQ(half, static_cast<float>(test::round_away(values[i]))) << table->target << " " << values[i];
      }
    }
  }
}

TEST(Remainder, EveryTargetHasTheBitsOfTheReferenceAndKeepsToItsRange) {
  test::Random random(62);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = test::length_of_case(random, i, 140, 1500);
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
    const size_t elements = values.size() + 1;
    std::vector<uint16_t> upper(elements, 7);
    std::vector<uint16_t> lower(elements, 7);
    supported().front()->split(upper.data(), lower.data(), values.data(), count);
    std::vector<uint32_t> joined(elements, 7);
    supported().front()->join(reinterpret_cast<float *>(joined.data()), upper.data(), lower.data(), count);
    for (const Table *table : supported()) {
      std::vector<uint16_t> actual_upper(elements, 7);
      std::vector<uint16_t> actual_lower(elements, 7);
      std::vector<uint32_t> actual(elements, 7);
      table->split(actual_upper.data(), actual_lower.data(), values.data(), count);
      table->join(reinterpret_cast<float *>(actual.data()), upper.data(), lower.data(), count);
      ASSERT_EQ(actual_upper, upper) << table->target << " count " << count;
      ASSERT_EQ(actual_lower, lower) << table->target << " count " << count;
      ASSERT_EQ(actual, joined) << table->target << " count " << count;
    }
  }
}

}  // namespace
}  // namespace zero::kernels::remainder_test
