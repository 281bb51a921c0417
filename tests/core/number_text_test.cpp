/// @file Numbers as texts.
#include "core/number_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace zero::number_text_test {
namespace {

TEST(NumberText, ReadsBackAsTheSameNumber) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(65536), "65536");
  for (const double value : {1.0 / 3, -2.5e-300, std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}) {
    EXPECT_EQ(std::strtod(number_text(value).c_str(), nullptr), value);
  }
}

TEST(NumberText, BytesHaveTheUnitThatShowsThem) {
  EXPECT_EQ(nbytes_text(0), "0 bytes");
  EXPECT_EQ(nbytes_text(1), "1 byte");
  EXPECT_EQ(nbytes_text(999), "999 bytes");
  EXPECT_EQ(nbytes_text(4096), "4.10 KB");
  EXPECT_EQ(nbytes_text(999'990), "999.99 KB");
  EXPECT_EQ(nbytes_text(1e6), "1.00 MB");
  EXPECT_EQ(nbytes_text(19'500'000), "19.50 MB");
  EXPECT_EQ(nbytes_text(49.5e9), "49.50 GB");
  EXPECT_EQ(nbytes_text(1e18), "1000000.00 TB");
}

TEST(NumberText, NounsAgreeWithTheirNumber) {
  EXPECT_EQ(count_text(0, "rank"), "0 ranks");
  EXPECT_EQ(count_text(1, "rank"), "1 rank");
  EXPECT_EQ(count_text(2, "rank"), "2 ranks");
}

TEST(NumberText, BoundsAreThoseOfTheHeaders) {
  for (const int64_t bound : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{4096}, (int64_t{1} << 20) - 1, (int64_t{1} << 40) + 1}) {
    EXPECT_EQ(bound_text(bound), std::to_string(bound));
  }
  EXPECT_EQ(bound_text(int64_t{1} << 20), "2^20");
  EXPECT_EQ(bound_text(int64_t{1} << 62), "2^62");
  EXPECT_EQ(bound_text((int64_t{1} << 31) - 1), "2^31 - 1");
  EXPECT_EQ(bound_text(INT64_MAX), "2^63 - 1");
  for (const double bound : {0.0, 1.0, 1e30, 0x1.8p30}) EXPECT_EQ(bound_text(bound), number_text(bound));
  EXPECT_EQ(bound_text(0x1p-30), "2^-30");
  EXPECT_EQ(bound_text(0x1p100), "2^100");
}

}  // namespace
}  // namespace zero::number_text_test
