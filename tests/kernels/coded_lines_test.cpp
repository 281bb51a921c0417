/// @file Coded lines: what comes back is within the bound of the code, and what is not finite stays
/// so.
#include "kernels/coded_lines.h"

#include "core/partition.h"

#include <zero/config.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace zero::test::coded_lines_test {
namespace {

using kernels::Coder;
using kernels::coders;
using kernels::find_coder;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> round_trip(const Coder &coder, const std::vector<float> &values, const std::vector<uint8_t> &full) {
  const kernels::Table &table = kernels::active();
  const auto wanted = kernels::coded_nbytes(coder, std::ssize(full), std::count(full.begin(), full.end(), 1));
  std::vector<std::byte> coded(static_cast<size_t>(wanted), std::byte{0xAB});
  std::vector<float> out(values.size(), -1);
  kernels::encode_lines(table, coder, values.data(), std::ssize(values), full, coded.data());
  kernels::decode_lines(table, coder, coded.data(), std::ssize(values), full, out.data());
  return out;
}

std::vector<uint8_t> no_full(size_t count) { return std::vector<uint8_t>((count + kLine - 1) / kLine); }

/// In float64: half a quantum of integers; a sixteenth of the value, or half the smallest quantum
/// of E4M3, which is largest / 448 / 512.
double bound(const Coder &coder, double value, double largest) {
  if (coder.number == ZERO_CODE_I8) return largest / 127 / 2 * 1.0001;
  if (coder.number == ZERO_CODE_I4) return largest / 7 / 2 * 1.0001;
  return std::max(std::abs(value) / 16, largest / 448 / 1024) * 1.000001;
}

TEST(CodedLines, StayWithinTheBoundOfTheCode) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 2000; ++round) {
    const auto count = static_cast<size_t>(random() % 1500 + 1);
    std::vector<float> values(count);
    const float unit = std::ldexp(1.0F, static_cast<int>(random() % 160) - 100);
    for (float &value : values) value = random() % 8 == 0 ? 0 : normal(random) * unit;
    if (round % 5 == 0) values[random() % count] *= 1e6F;
    for (const Coder &coder : coders()) {
      const std::vector<float> back = round_trip(coder, values, no_full(count));
      for (size_t line = 0; line < count; line += kLine) {
        double largest = 0;
        for (size_t i = line; i < std::min(count, line + kLine); ++i) largest = std::max(largest, std::abs(static_cast<double>(values[i])));
        for (size_t i = line; i < std::min(count, line + kLine); ++i) {
          ASSERT_LE(std::abs(static_cast<double>(back[i]) - values[i]), bound(coder, values[i], largest))
              << coder.text << " value " << values[i] << " largest " << largest;
          ASSERT_TRUE(values[i] != 0 || back[i] == 0);
        }
      }
    }
  }
}

/// The second time nothing is lost.
TEST(CodedLines, OfIntegersComeBackAsTheyAre) {
  for (const auto &[code, most] : {std::pair{ZERO_CODE_I8, 127}, std::pair{ZERO_CODE_I4, 7}}) {
    std::vector<float> values;
    for (int i = 0; i < 3 * kLine; ++i) values.push_back(static_cast<float>(i % (2 * most + 1) - most) * 0.25F);
    EXPECT_EQ(round_trip(*find_coder(code), values, no_full(values.size())), values);
  }
}

TEST(CodedLines, TravelInFullWhereTheyAreToldTo) {
  std::vector<float> values;
  for (int i = 0; i < 3 * kLine + 7; ++i) values.push_back(1.0F / static_cast<float>(i + 3));
  for (const Coder &coder : coders()) {
    std::vector<uint8_t> full = {0, 1, 0, 1};
    const std::vector<float> back = round_trip(coder, values, full);
    for (size_t i = 0; i < values.size(); ++i) {
      if (full[i / kLine] == 0) continue;
      EXPECT_EQ(back[i], values[i]);
    }
    EXPECT_NE(std::vector<float>(back.begin(), back.begin() + kLine), std::vector<float>(values.begin(), values.begin() + kLine));
  }
}

TEST(CodedLines, KeepWhatIsNotFinite) {
  for (const Coder &coder : coders()) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      std::vector<float> values(2 * kLine, 0.5F);
      values[300] = bad;
      const std::vector<float> back = round_trip(coder, values, no_full(values.size()));
      EXPECT_FALSE(std::isfinite(back[300]));
      for (size_t i = 0; i < kLine; ++i) EXPECT_TRUE(std::isfinite(back[i]));
    }
  }
}

TEST(CodedLines, OfZerosAndTheSmallestNumbers) {
  for (const Coder &coder : coders()) {
    EXPECT_EQ(round_trip(coder, std::vector<float>(kLine, 0), no_full(kLine)), std::vector<float>(kLine, 0));
    const std::vector<float> tiny(kLine, std::numeric_limits<float>::denorm_min());
    for (const float value : round_trip(coder, tiny, no_full(kLine))) EXPECT_LE(std::abs(value), std::numeric_limits<float>::min());
    const std::vector<float> huge(kLine, std::numeric_limits<float>::max());
    for (const float value : round_trip(coder, huge, no_full(kLine))) EXPECT_TRUE(std::isfinite(value) && value > 3e38F) << value;
  }
}

TEST(CodedLines, TakeTheBytesOfTheFormula) {
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_I8), 10, 0), 10 * 260);
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_F8), 10, 2), 10 * 260 + 2 * 1024);
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_I4), 10, 0), 10 * 132);
}

}  // namespace
}  // namespace zero::test::coded_lines_test
