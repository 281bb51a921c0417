/// @file Powers with integer exponents against the C library in a wider format.
#include "kernels/reference/power-inl.h"

#include "tests/kernels/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zero::kernels::power_test {
namespace {

/// powl is off by less than a unit of its 64 bits. Its rounding to a double is that of the power,
/// unless the power is close to the middle of two doubles. Then either neighbour is accepted.
TEST(Power, RoundedToNearest) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double has no more bits than double on this machine";
  test::Random random(7);
  int64_t near_middles = 0;
  for (int64_t i = 0; i < test::cases(200'000); ++i) {
    const double base = random.below(4) == 0 ? 1 - std::ldexp(1 + std::fabs(random.value(1)), -static_cast<int>(random.below(20)) - 2)
                                             : static_cast<double>(random.next() >> 11) * 0x1p-53;
    const int64_t exponent = random.below(2) == 0 ? 1 + random.below(100) : 1 + random.below(1'000'000);
    const long double exact = powl(base, static_cast<long double>(exponent));
    if (exact < 1e-290L) continue;
    const auto expected = static_cast<double>(exact);
    const double actual = reference::power(base, exponent);
    if (actual == expected) continue;
    ++near_middles;
    const long double unit = std::ldexp(1.0L, std::ilogb(expected) - 52);
    EXPECT_LE(fabsl(exact - actual), unit * (0.5L + 0x1p-10L)) << base << " ^ " << exponent;
  }
  EXPECT_LE(near_middles, test::cases(200'000) / 500);
}

TEST(Power, Ends) {
  EXPECT_EQ(reference::power(0.9, 0), 1);
  EXPECT_EQ(reference::power(0.9, 1), 0.9);
  EXPECT_EQ(reference::power(0, 1), 0);
  EXPECT_EQ(reference::power(0.5, 10), 0x1p-10);
  EXPECT_EQ(reference::power(0.999, int64_t{1} << 60), 0);
}

}  // namespace
}  // namespace zero::kernels::power_test
