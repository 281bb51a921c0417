/// @file Random numbers by place: the library's published vectors, every target against Random123,
/// and initialisers.
#include "kernels/initialise.h"
#include "kernels/kernels.h"
#include "kernels/philox.h"
#include "kernels/reference/random_words-inl.h"

#include "random.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

namespace zero::kernels::random_test {
namespace {

/// Known answers from Random123.
TEST(Philox, HasThePublishedOutputs) {
  const reference::Words zero = reference::philox({}, 0, 0);
  EXPECT_EQ(std::vector<uint32_t>(zero.word, zero.word + 4), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const reference::Words pi = reference::philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  EXPECT_EQ(std::vector<uint32_t>(pi.word, pi.word + 4), (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  uint64_t wide[4];
  const uint64_t wide_zero[4] = {};
  zero_philox4x64(wide, wide_zero, wide_zero);
  EXPECT_EQ(wide[0], 0x16554d9eca36314cU);
  EXPECT_EQ(wide[3], 0x7e68b68aec7ba23bU);
}

/// The random number of one element, by the counter and key that random.h documents.
uint32_t random_word(const RandomKey &key, uint64_t index) {
  const uint64_t group = index / 4;
  const r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                                               static_cast<uint32_t>(key.step), key.slot + 256 * static_cast<uint32_t>(key.step >> 32)}};
  const r123::Philox4x32::key_type seed = {{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
  return r123::Philox4x32()(counter, seed)[index % 4];
}

TEST(RandomWords, EveryTargetHasTheBitsOfRandom123) {
  test::Random random(50);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = test::length_of_case(random, i, 140, 1200);
    const RandomKey key = {random.next(), random.next() >> random.below(64) >> 8, static_cast<uint32_t>(random.below(5))};
    const uint64_t first = random.next() >> (2 + random.below(62)) << 2;
    std::vector<uint32_t> expected(static_cast<size_t>(count) + 1, 7);
    for (int64_t j = 0; j < count; ++j) expected[static_cast<size_t>(j)] = random_word(key, first + static_cast<uint64_t>(j));
    for (const Table *table : supported()) {
      std::vector<uint32_t> actual(expected.size(), 7);
      table->random_words(actual.data(), count, key, first);
      ASSERT_EQ(actual, expected) << table->target << " count " << count << " first " << first;
    }
  }
}

std::vector<float> initialised(Initialiser kind, double a, double b, uint64_t seed, uint64_t tensor, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  initialise(values.data(), count, kind, a, b, seed, tensor, 0);
  return values;
}

TEST(Initialise, HasTheSameBitsHoweverItIsCut) {
  test::Random random(51);
  int64_t cuts = 0;
  for (const Initialiser kind : {Initialiser::constant, Initialiser::uniform, Initialiser::normal}) {
    constexpr int64_t kCount = 5000;
    const std::vector<float> whole = initialised(kind, -0.5, 2.0, 77, 3, kCount);
    for (int64_t i = 0; i < test::cases(200); ++i) {
      std::vector<float> cut(whole.size());
      for (int64_t at = 0; at < kCount; ++cuts) {
        const int64_t count = std::min(kCount - at, random.below(random.below(8) == 0 ? 900 : 9));
        initialise(cut.data() + at, count, kind, -0.5, 2.0, 77, 3, at);
        at += count;
      }
      ASSERT_EQ(cut, whole);
    }
  }
  std::printf("%lld pieces compared\n", static_cast<long long>(cuts));
}

TEST(Initialise, SeedsAndTensorsDifferAndLargeIndicesAreDistinct) {
  const std::vector<float> values = initialised(Initialiser::uniform, 0, 1, 1, 1, 1000);
  EXPECT_NE(values, initialised(Initialiser::uniform, 0, 1, 2, 1, 1000));
  EXPECT_NE(values, initialised(Initialiser::uniform, 0, 1, 1, 2, 1000));
  std::vector<float> far(1000);
  initialise(far.data(), 1000, Initialiser::uniform, 0, 1, 1, 1, int64_t{1} << 34);
  EXPECT_NE(values, far);
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double fourth = 0;  ///< about the mean, over the variance squared
};

Moments moments(const std::vector<float> &values) {
  Moments result;
  const auto count = static_cast<double>(values.size());
  for (const float value : values) result.mean += value / count;
  for (const float value : values) result.variance += std::pow(value - result.mean, 2) / count;
  for (const float value : values) result.fourth += std::pow(value - result.mean, 4) / count / (result.variance * result.variance);
  return result;
}

/// Bounds are 6 standard errors. A random seed would fail in one of 5e8 runs; the seed is fixed.
/// The standard error of a mean is sigma / sqrt(n), of a variance sigma^2 sqrt((k - 1) / n) with
/// kurtosis k (uniform 1.8, normal 3), and of the normal's fourth moment sqrt(96 / n).
TEST(Initialise, MomentsAreThoseOfTheDistribution) {
  constexpr int64_t kCount = 1000000;
  const double error = 6 / std::sqrt(kCount);
  const std::vector<float> uniform = initialised(Initialiser::uniform, -1, 3, 123, 4, kCount);
  const Moments u = moments(uniform);
  const double variance = 16.0 / 12;
  EXPECT_NEAR(u.mean, 1, error * std::sqrt(variance));
  EXPECT_NEAR(u.variance, variance, error * variance * std::sqrt(0.8));
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -1.0F);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 3.0F);
  const Moments n = moments(initialised(Initialiser::normal, 0.5, 0.02, 123, 5, kCount));
  EXPECT_NEAR(n.mean, 0.5, error * 0.02);
  EXPECT_NEAR(n.variance, 0.0004, error * 0.0004 * std::sqrt(2.0));
  EXPECT_NEAR(n.fourth, 3, error * std::sqrt(96.0));
  EXPECT_EQ(initialised(Initialiser::constant, 0.1, 9, 1, 1, 5), std::vector<float>(5, 0.1F));
}

/// If fp32 steps are as coarse as the range, values that round up to the upper end must be moved
/// below it.
TEST(Initialise, UniformNeverReachesItsUpperEnd) {
  const float above = std::nextafter(1.0F, 2.0F);
  for (const float value : initialised(Initialiser::uniform, 1.0, above, 9, 9, 10000)) ASSERT_EQ(value, 1.0F);
  for (const float value : initialised(Initialiser::uniform, -1.0, 0.0, 9, 9, 100000)) ASSERT_TRUE(value >= -1 && value < 0);
}

/// Box and Muller from the words of Random123, in long double. The fp64 arithmetic is off by a few
/// 2^-53 of at most 9, far below half of an fp32 step. About one value in 2^26 is so close to a tie
/// that it may differ by a step.
TEST(Initialise, NormalsAreThoseOfBoxAndMuller) {
  const std::vector<float> values = initialised(Initialiser::normal, 0, 1, 31, 32, 4000);
  int64_t different = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto words = r123::Philox4x64()({{i / 4, 0, 0, 0}}, {{31, 32}});
    const long double radius = std::sqrt(-2 * std::log(1 - std::ldexp(static_cast<long double>(words[i % 4 / 2 * 2] >> 11), -53)));
    const long double angle = 2 * std::acos(-1.0L) * std::ldexp(static_cast<long double>(words[i % 4 / 2 * 2 + 1] >> 11), -53);
    const auto expected = static_cast<float>(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
    ASSERT_LE(std::fabs(values[i] - expected), std::fabs(expected) * 0x1p-23);
    if (values[i] != expected) ++different;
  }
  EXPECT_LE(different, 1);
}

}  // namespace
}  // namespace zero::kernels::random_test
