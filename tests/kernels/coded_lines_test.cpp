/// @file Coded lines: what comes back is within the bound of the code, sparse lines are those of plain programs, and what is not finite
/// stays so.
#include "kernels/coded_lines.h"

#include "core/partition.h"

#include <zero/config.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
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
      if (coder.sparse()) continue;
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
    EXPECT_EQ(round_trip(*find_coder(code, 0), values, no_full(values.size())), values);
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
      const bool all = std::all_of(back.begin() + kLine, back.end(), [](float value) { return std::isnan(value); });
      EXPECT_EQ(all, coder.number != ZERO_CODE_F8) << coder.text;
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
    const std::vector<float> back = round_trip(coder, huge, no_full(kLine));
    const auto kept = std::count_if(back.begin(), back.end(), [](float value) { return std::isfinite(value) && value > 3e38F; });
    EXPECT_EQ(kept, coder.kept > 0 ? coder.kept : kLine) << coder.text;
    EXPECT_EQ(std::count(back.begin(), back.end(), 0.0F), kLine - kept) << coder.text;
  }
}

TEST(CodedLines, TakeTheBytesOfTheFormula) {
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_I8, 0), 10, 0), 10 * 260);
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_F8, 0), 10, 2), 10 * 260 + 2 * 1024);
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_I4, 0), 10, 0), 10 * 132);
  EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_SIGN, 8), 10, 1), 10 * 36 + 1024);
  for (int64_t kept = 1; kept <= 64; ++kept)
    EXPECT_EQ(kernels::coded_nbytes(*find_coder(ZERO_CODE_TOP, kept), 10, 0), 10 * (2 * kept + 4)) << kept;
  for (const int64_t kept : {0, 65, -1}) EXPECT_EQ(find_coder(ZERO_CODE_TOP, kept), nullptr) << kept;
  EXPECT_EQ(find_coder(ZERO_CODE_NONE, 8), nullptr);
}

constexpr int64_t kKept[] = {1, 2, 7, 8, 31, 64};

/// One line: sorts places by magnitude, where equal ones keep their order, and takes the 8-bit codes of the first.
std::vector<float> plain_top(const std::vector<float> &line, int64_t kept) {
  std::vector<size_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return std::abs(line[a]) > std::abs(line[b]); });
  const std::vector<float> codes = round_trip(*find_coder(ZERO_CODE_I8, 0), line, no_full(line.size()));
  std::vector<float> out(line.size(), 0);
  for (size_t i = 0; i < static_cast<size_t>(kept); ++i) out[places[i]] = codes[places[i]];
  return out;
}

void expect_same_bits(const std::vector<float> &found, const std::vector<float> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    // An 8-bit code of 0 has no sign, and neither has a value that does not travel.
    ASSERT_TRUE(std::bit_cast<uint32_t>(found[i]) == std::bit_cast<uint32_t>(expected[i]) || (found[i] == 0 && expected[i] == 0))
        << "place " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

/// The mean in float64, added from the end, to a rounding of fp32.
void expect_plain_signs(const std::vector<float> &line, const std::vector<float> &back) {
  double mean = 0;
  for (auto value = line.rbegin(); value != line.rend(); ++value) mean += std::abs(static_cast<double>(*value)) / kLine;
  for (size_t i = 0; i < line.size(); ++i) {
    ASSERT_EQ(std::signbit(back[i]), line[i] < 0) << "place " << i << ": " << line[i];
    ASSERT_EQ(std::abs(back[i]), std::abs(back[0]));
  }
  ASSERT_NEAR(std::abs(static_cast<double>(back[0])), mean, mean * 0x1p-23 + 0x1p-149);
}

/// Calls use(line) with lines of many kinds: of all magnitudes, of few values so that many are equal, of subnormal numbers, nearly empty.
template <class Use>
void over_lines(Use &&use) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 1000; ++round) {
    std::vector<float> line(kLine);
    const float unit = std::ldexp(1.0F, static_cast<int>(random() % 160) - 100);
    for (float &value : line) {
      switch (round % 4) {
        case 0:
          value = normal(random) * unit;
          break;
        case 1:
          value = static_cast<float>(static_cast<int>(random() % 7) - 3) * unit;
          break;
        case 2:
          value = std::bit_cast<float>(static_cast<uint32_t>(random() % 0x01000000U) | (random() % 2 == 0 ? 0x80000000U : 0U));
          break;
        default:
          value = random() % 100 == 0 ? normal(random) : 0;
      }
    }
    use(line);
  }
}

TEST(SparseLines, KeepExactlyTheLargestAndTheFirstOfEqualOnes) {
  over_lines([](const std::vector<float> &line) {
    for (const int64_t kept : kKept)
      expect_same_bits(round_trip(*find_coder(ZERO_CODE_TOP, kept), line, no_full(kLine)), plain_top(line, kept));
  });
}

TEST(SparseLines, HaveTheSignsAndTheMeanMagnitude) {
  over_lines(
      [](const std::vector<float> &line) { expect_plain_signs(line, round_trip(*find_coder(ZERO_CODE_SIGN, 0), line, no_full(kLine))); });
}

/// In the order of their bits, and in a random order of the finite ones.
TEST(SparseLines, HoldForAllValuesOfBf16) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 1U << 16; ++bits) values.push_back(std::bit_cast<float>(bits << 16));
  std::vector<float> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](float value) { return std::isfinite(value); });
  std::shuffle(finite.begin(), finite.end(), std::mt19937_64(3));
  values.insert(values.end(), finite.begin(), finite.end());
  ASSERT_EQ(values.size() % kLine, 0U);
  int64_t lost = 0;
  for (size_t begin = 0; begin < values.size(); begin += kLine) {
    const std::vector<float> line(values.begin() + static_cast<int64_t>(begin), values.begin() + static_cast<int64_t>(begin) + kLine);
    const std::vector<float> signs = round_trip(*find_coder(ZERO_CODE_SIGN, 0), line, no_full(kLine));
    if (!std::all_of(line.begin(), line.end(), [](float value) { return std::isfinite(value); })) {
      ++lost;
      for (const float value : signs) ASSERT_TRUE(std::isnan(value));
      for (const int64_t kept : kKept) {
        for (const float value : round_trip(*find_coder(ZERO_CODE_TOP, kept), line, no_full(kLine))) ASSERT_TRUE(std::isnan(value));
      }
      continue;
    }
    expect_plain_signs(line, signs);
    for (const int64_t kept : kKept)
      expect_same_bits(round_trip(*find_coder(ZERO_CODE_TOP, kept), line, no_full(kLine)), plain_top(line, kept));
  }
  EXPECT_EQ(lost, 2);
}

/// What is missing of a line is zeros, which are never among the largest.
TEST(SparseLines, EndBeforeTheLine) {
  for (const int64_t kept : kKept) {
    std::vector<float> values;
    for (int i = 0; i < 3 * kLine + 9; ++i) values.push_back(static_cast<float>(i % 11 - 5));
    const std::vector<float> back = round_trip(*find_coder(ZERO_CODE_TOP, kept), values, no_full(values.size()));
    const auto sent = std::count_if(back.end() - 9, back.end(), [](float value) { return value != 0; });
    EXPECT_EQ(sent, std::min<int64_t>(kept, std::count_if(values.end() - 9, values.end(), [](float value) { return value != 0; })));
  }
}

}  // namespace
}  // namespace zero::test::coded_lines_test
