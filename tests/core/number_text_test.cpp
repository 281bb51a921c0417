/// @file Numbers as texts.
#include "core/number_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace zero {
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

}  // namespace
}  // namespace zero
