/// @file The slots of 8-bit floats: every target against roundings in float64, the promised error,
/// and non-finite values.
#include "kernels/block_scaled.h"

#include "random.h"
#include "storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace zero::kernels::block_scaled_test {
namespace {

constexpr DType kFormats[] = {DType::f8e4m3, DType::f8ue5m3};

test::Stored encoded(const Table &table, DType dtype, const std::vector<float> &values, const uint32_t *random) {
  const auto count = static_cast<int64_t>(values.size());
  test::Stored stored(dtype, count);
  table.encode(static_cast<uint8_t *>(stored.data()), stored.scales(), dtype, values.data(), count, random);
  return stored;
}

std::vector<float> decoded(const Table &table, test::Stored stored, size_t count) {
  std::vector<float> values(count + 1, 7.0F);
  table.decode(values.data(), static_cast<uint8_t *>(stored.data()), stored.scales(), stored.dtype(), static_cast<int64_t>(count));
  EXPECT_EQ(values.back(), 7.0F);
  values.pop_back();
  return values;
}

/// Magnitudes over many binades, all zero, tiny (the scale at its minimum), or any bits. For a
/// format without a sign, half of the cases have no negative values.
std::vector<float> random_line_values(test::Random &random, int64_t count, DType dtype) {
  const int64_t kind = random.below(6);
  const bool has_negative = dtype == DType::f8e4m3 || random.below(2) == 0;
  const int shift = static_cast<int>(random.below(60)) - 30;
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) {
    const double tiny = std::ldexp(random.value(12), -125);
    value = kind == 0 ? std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)))
                      : static_cast<float>(kind == 1   ? 0.0
                                           : kind == 2 ? tiny
                                                       : std::ldexp(random.value(40), shift));
    if (!has_negative || (dtype == DType::f8ue5m3 && random.below(50) != 0)) value = std::fabs(value);
  }
  return values;
}

TEST(BlockScaled, EveryTargetHasTheBitsOfARoundingInFloat64) {
  test::Random random(70);
  int64_t compared = 0;
  for (int64_t i = 0; i < test::cases(6000); ++i) {
    const int64_t count = test::length_of_case(random, i, 70, 1400);
    const DType dtype = kFormats[i % 2];
    const bool stochastic = random.below(2) == 0;
    const std::vector<float> values = random_line_values(random, count, dtype);
    std::vector<uint32_t> words(values.size());
    for (uint32_t &word : words) word = random.below(8) == 0 ? (random.below(2) == 0 ? 0 : ~0U) : static_cast<uint32_t>(random.next());
    test::Stored expected(dtype, count);
    expected.assign(values, stochastic ? words.data() : nullptr);
    for (const Table *table : supported()) {
      const test::Stored actual = encoded(*table, dtype, values, stochastic ? words.data() : nullptr);
      ASSERT_EQ(actual, expected) << table->target << " " << dtype_name(dtype) << " count " << count << " case " << i;
      const std::vector<float> back = decoded(*table, actual, values.size());
      for (int64_t j = 0; j < count; ++j) {
        ASSERT_EQ(std::bit_cast<uint32_t>(back[static_cast<size_t>(j)]), std::bit_cast<uint32_t>(expected.get(j))) << table->target;
      }
      compared += count;
    }
  }
  std::printf("%lld elements compared\n", static_cast<long long>(compared));
}

TEST(BlockScaled, EveryCodeIsReadWithEveryKindOfScale) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : kFormats) {
    test::Stored stored(dtype, kLine);
    for (int code = 0; code < 256; ++code) static_cast<uint8_t *>(stored.data())[code] = static_cast<uint8_t>(code);
    for (const float scale : {0.5F, 0.0F, -2.0F, 0x1p-126F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      stored.scales()[0] = scale;
      for (const Table *table : supported()) {
        const std::vector<float> values = decoded(*table, stored, kLine);
        for (int code = 0; code < 256; ++code) {
          const double expected = test::f8_value(dtype, static_cast<uint8_t>(code)) * scale;
          const uint32_t bits = std::isnan(expected) ? 0x7fc00000U : std::bit_cast<uint32_t>(static_cast<float>(expected));
          ASSERT_EQ(std::bit_cast<uint32_t>(values[static_cast<size_t>(code)]), bits)
              << table->target << " " << dtype_name(dtype) << " code " << code << " scale " << scale;
        }
      }
    }
  }
}

TEST(BlockScaled, ErrorsStayWithinTheirBound) {
  test::Random random(71);
  double worst[2] = {};
  for (int i = 0; i < 400; ++i) {
    const DType dtype = kFormats[i % 2];
    std::vector<float> values(kLine);
    const int shift = static_cast<int>(random.below(200)) - 140;
    for (float &value : values) value = static_cast<float>(std::ldexp(random.value(45), shift));
    if (dtype == DType::f8ue5m3) {
      for (float &value : values) value = std::fabs(value);
    }
    double absmax = 0;
    for (const float value : values) absmax = std::max(absmax, double{std::fabs(value)});
    const double least = dtype == DType::f8e4m3 ? absmax / 458752 : absmax / 1.5e10;
    const double floor = 0x1p-126 * (dtype == DType::f8e4m3 ? 0x1p-10 : 0x1p-17);
    std::vector<uint32_t> words(kLine);
    for (uint32_t &word : words) word = static_cast<uint32_t>(random.next());
    for (const bool stochastic : {false, true}) {
      const test::Stored stored = encoded(active(), dtype, values, stochastic ? words.data() : nullptr);
      for (int64_t j = 0; j < kLine; ++j) {
        const double value = values[static_cast<size_t>(j)];
        const double bound = std::max({std::fabs(value) / 16, least, floor}) * (1 + 0x1p-20) * (stochastic ? 2 : 1);
        const double error = std::fabs(stored.get(j) - value);
        worst[stochastic] = std::max(worst[stochastic], error / bound);
        ASSERT_LE(error, bound) << dtype_name(dtype) << " " << value << " absmax " << absmax;
      }
    }
  }
  std::printf("largest error: nearest %.3f, stochastic %.3f of its bound\n", worst[0], worst[1]);
}

TEST(BlockScaled, WhatIsNotFiniteStaysInItsElement) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Table *table : supported()) {
    for (const DType dtype : kFormats) {
      for (const float bad : {nan, -nan, infinity, -infinity}) {
        for (size_t at = 0; at < kLine; at += 17) {
          std::vector<float> values(kLine, 1.0F);
          values[at] = bad;
          const std::vector<float> back = decoded(*table, encoded(*table, dtype, values, nullptr), kLine);
          for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(std::isnan(back[i]), i == at) << table->target << " " << dtype_name(dtype);
          ASSERT_EQ(back[at == 0 ? 1 : 0], 1.0F);
        }
      }
    }
    const std::vector<float> negative = decoded(*table, encoded(*table, DType::f8ue5m3, {1.0F, -1e-30F, -0.0F}, nullptr), 3);
    EXPECT_TRUE(std::isnan(negative[1]));
    EXPECT_EQ(std::bit_cast<uint32_t>(negative[2]), 0U);
  }
}

TEST(BlockScaled, SecondMomentsAboveZeroNeverBecomeZero) {
  const std::vector<uint32_t> highest(kLine, ~0U);  // rounds down if possible
  std::vector<float> values(kLine, std::numeric_limits<float>::denorm_min());
  values[0] = 1.0F;
  for (const Table *table : supported()) {
    for (const uint32_t *random : {static_cast<const uint32_t *>(nullptr), highest.data()}) {
      for (const float value : decoded(*table, encoded(*table, DType::f8ue5m3, values, random), kLine)) ASSERT_GT(value, 0.0F);
    }
  }
}

/// One line of equal values except its largest, so that the scale is known; n = 2^18 roundings
/// each. The mean is off by less than 6 unit sqrt(p (1 - p) / n), and by 2^-22 |x| for the fp32
/// arithmetic. A random seed would fail in one of 5e8 runs; the seed is fixed.
TEST(BlockScaled, StochasticRoundingKeepsTheMean) {
  constexpr int64_t kLines = 1 << 10;
  test::Random random(72);
  std::vector<uint32_t> words(kLines * kLine);
  active().random_words(words.data(), kLines * kLine, {.seed = 5, .step = 6, .slot = 1}, 0);
  double worst = 0;
  for (int i = 0; i < 40; ++i) {
    const DType dtype = kFormats[i % 2];
    const test::Format format = test::format_of(dtype);
    const float x = std::ldexp(std::fabs(random.value(2)) + 1e-3F, -static_cast<int>(random.below(dtype == DType::f8e4m3 ? 12 : 22)));
    std::vector<float> values(kLines * kLine, x);
    for (int64_t line = 0; line < kLines; ++line) values[static_cast<size_t>(line * kLine)] = 2.0F;
    const test::Stored stored = encoded(active(), dtype, values, words.data());
    double mean = 0;
    for (int64_t j = 0; j < kLines * kLine; ++j) mean += j % kLine == 0 ? 0 : stored.get(j) / (kLines * (kLine - 1.0));
    const double scale = stored.scale(0);
    const double unit = test::quantum(x / scale, format) * scale;
    const double chance = x / unit - std::floor(x / unit);
    const double bound = 6 * unit * std::sqrt(chance * (1 - chance) / (kLines * (kLine - 1.0))) + 0x1p-22 * x;
    worst = std::max(worst, std::fabs(mean - x) / bound);
    EXPECT_LE(std::fabs(mean - x), bound) << dtype_name(dtype) << " " << x;
  }
  std::printf("largest deviation of a mean: %.2f of its bound\n", worst);
}

}  // namespace
}  // namespace zero::kernels::block_scaled_test
