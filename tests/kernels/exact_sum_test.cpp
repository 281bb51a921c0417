/// @file ExactSum against an accumulator of single bits, and its independence of order and cuts.
#include "kernels/exact_sum.h"

#include "random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace zero::kernels::exact_sum_test {
namespace {

/// The sum as single bits, bit i of weight 2^(i - 1074), with carries at once.
class BitSum {
 public:
  void add(double value) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
    auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
    int position = exponent - 53 + 1074;
    for (; position < 0; ++position) mantissa >>= 1;  // subnormal: these bits are zero
    for (; mantissa != 0; mantissa >>= 1, ++position) {
      if ((mantissa & 1) != 0) add_bit(position);
    }
  }

  double total() const {
    size_t top = bits_.size();
    while (top > 0 && !bits_[top - 1]) --top;
    const size_t lowest = top > 53 ? top - 53 : 0;
    double value = 0;
    for (size_t i = lowest; i < top; ++i) value += std::ldexp(bits_[i] ? 1.0 : 0.0, static_cast<int>(i) - 1074);
    if (lowest == 0 || !bits_[lowest - 1]) return value;
    const bool above_half = std::find(bits_.begin(), bits_.begin() + static_cast<std::ptrdiff_t>(lowest) - 1, true) !=
                            bits_.begin() + static_cast<std::ptrdiff_t>(lowest) - 1;
    return above_half || bits_[lowest] ? value + std::ldexp(1.0, static_cast<int>(lowest) - 1074) : value;
  }

 private:
  void add_bit(int position) {
    auto at = static_cast<size_t>(position);
    for (; bits_[at]; ++at) bits_[at] = false;
    bits_[at] = true;
  }
  std::vector<bool> bits_ = std::vector<bool>(2200);
};

std::vector<double> random_terms(test::Random &random, int64_t count, int exponents) {
  std::vector<double> terms(static_cast<size_t>(count));
  for (double &term : terms) {
    const int exponent = static_cast<int>(random.below(exponents)) - exponents / 2;
    term = std::ldexp(static_cast<double>(random.next() >> 11), exponent - 53);
  }
  return terms;
}

double exact(const std::vector<double> &terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.total();
}

TEST(ExactSum, IsTheRoundedSumOfAllBits) {
  test::Random random(1);
  const int64_t count = test::cases(2000);
  for (int64_t i = 0; i < count; ++i) {
    const int exponents[] = {1, 4, 60, 400, 2000};
    const std::vector<double> terms = random_terms(random, random.below(200), exponents[i % 5]);
    BitSum expected;
    for (const double term : terms) expected.add(term);
    ASSERT_EQ(exact(terms), expected.total()) << "case " << i;
  }
  std::printf("%lld sums compared\n", static_cast<long long>(count));
}

TEST(ExactSum, DoesNotDependOnOrderCutsOrRoute) {
  test::Random random(2);
  const int64_t count = test::cases(1000);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<double> terms = random_terms(random, 1 + random.below(300), 300);
    const double expected = exact(terms);
    for (size_t j = terms.size() - 1; j > 0; --j) std::swap(terms[j], terms[random.next() % (j + 1)]);
    std::vector<ExactSum> parts(1 + random.next() % 9);
    for (const double term : terms) parts[random.next() % parts.size()].add(term);
    ExactSum merged;
    int64_t added[ExactSum::kExported] = {};
    for (const ExactSum &part : parts) {
      merged.merge(part);
      int64_t limbs[ExactSum::kExported];
      part.export_limbs(limbs);
      for (int j = 0; j < ExactSum::kExported; ++j) added[j] += limbs[j];
    }
    ASSERT_EQ(merged.total(), expected) << "case " << i;
    ASSERT_EQ(ExactSum::import_limbs(added).total(), expected) << "case " << i;
  }
  std::printf("%lld permutations with random cuts compared\n", static_cast<long long>(count));
}

TEST(ExactSum, HoldsTwoToTheFortyTerms) {
  ExactSum sum;
  sum.add(DBL_MIN * 3);
  sum.add(0x1.fffffffffffffp+900);
  for (int i = 0; i < 40; ++i) sum.merge(ExactSum(sum));
  EXPECT_EQ(sum.total(), 0x1.fffffffffffffp+940);
  int64_t limbs[ExactSum::kExported];
  sum.export_limbs(limbs);
  for (int64_t &limb : limbs) limb *= int64_t{1} << 30;  // as many exports added
  EXPECT_EQ(ExactSum::import_limbs(limbs).total(), 0x1.fffffffffffffp+970);
}

TEST(ExactSum, RoundsToNearestEven) {
  EXPECT_EQ(exact({1.0, 0x1p-53}), 1.0);
  EXPECT_EQ(exact({1.0, 0x1p-52, 0x1p-53}), 1.0 + 0x1p-51);
  EXPECT_EQ(exact({1.0, 0x1p-53, 0x1p-1074}), 1.0 + 0x1p-52);
  EXPECT_EQ(exact({0x1.fffffffffffffp0, 0x1p-53}), 2.0);
  EXPECT_EQ(exact({0x1p-1074, 0x1p-1074}), 0x1p-1073);
  EXPECT_EQ(exact({DBL_MIN, 0x1p-1074}), DBL_MIN + 0x1p-1074);
}

TEST(ExactSum, KeepsZerosInfinitiesAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(std::bit_cast<uint64_t>(exact({})), 0U);
  EXPECT_EQ(std::bit_cast<uint64_t>(exact({0.0, -0.0})), 0U);
  EXPECT_EQ(exact({DBL_MAX, DBL_MAX}), infinity);
  EXPECT_EQ(exact({DBL_MAX}), DBL_MAX);
  EXPECT_EQ(exact({1.0, infinity}), infinity);
  EXPECT_TRUE(std::isnan(exact({nan, infinity, 1.0})));
  ExactSum sum;
  sum.add(nan);
  int64_t limbs[ExactSum::kExported];
  sum.export_limbs(limbs);
  EXPECT_TRUE(std::isnan(ExactSum::import_limbs(limbs).total()));
}

}  // namespace
}  // namespace zero::kernels::exact_sum_test
