/// @file all_within, copy_within, stream, scale, add, clamp, average and add_squares: every target
/// against the reference, the reference against float64.
#include "kernels/kernels.h"
#include "kernels/reference/float_bits.h"

#include "random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace zero::kernels::elementwise_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const Table &reference_table() { return *supported().front(); }

std::vector<float> special_values(test::Random &random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
  return values;
}

std::vector<uint32_t> bits_of(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

int64_t length_of_case(test::Random &random, int64_t index) { return test::length_of_case(random, index, 70, 3000); }

/// Elements of f32, f16 or bf16, as bits, from element `skip` on in memory that holds others around
/// them.
struct Elements {
  DType dtype;
  size_t skip;
  std::vector<uint32_t> bits;

  std::vector<uint8_t> stored() const {
    const auto nbytes = static_cast<size_t>(dtype_nbytes(dtype));
    std::vector<uint8_t> memory((skip + bits.size() + 8) * nbytes, 0xee);
    for (size_t i = 0; i < bits.size(); ++i) std::memcpy(memory.data() + (skip + i) * nbytes, &bits[i], nbytes);
    return memory;
  }
};

/// Both kinds of check and both kinds of copy agree. The copies are those of a plain loop, and
/// nothing around them changes.
void expect_within(bool expected, const Elements &elements, float limit) {
  const auto nbytes = static_cast<size_t>(dtype_nbytes(elements.dtype));
  const auto count = static_cast<int64_t>(elements.bits.size());
  const std::vector<uint8_t> from = elements.stored();
  const uint8_t *values = from.data() + elements.skip * nbytes;
  for (const Table *table : supported()) {
    ASSERT_EQ(table->all_within(values, elements.dtype, count, limit), expected) << table->target << " count " << count;
    for (const bool streams : {false, true}) {
      for (const size_t skip : {elements.skip, elements.skip + 3}) {
        std::vector<uint8_t> out(from.size() + 3 * nbytes, 0xdd);
        std::vector<uint8_t> copied = out;
        std::copy_n(values, elements.bits.size() * nbytes, copied.begin() + static_cast<std::ptrdiff_t>(skip * nbytes));
        ASSERT_EQ(table->copy_within(out.data() + skip * nbytes, values, elements.dtype, count, limit, streams), expected)
            << table->target << " count " << count;
        ASSERT_EQ(out, copied) << table->target << " count " << count << " streams " << streams;
      }
    }
  }
}

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

/// Infinity without a sign.
uint32_t infinity_of(DType dtype) { return dtype == DType::f32 ? 0x7f800000 : dtype == DType::f16 ? 0x7c00 : 0x7f80; }
uint32_t sign_of(DType dtype) { return dtype == DType::f32 ? 0x80000000 : 0x8000; }

float value_of(DType dtype, uint32_t bits) {
  if (dtype == DType::f32) return std::bit_cast<float>(bits);
  const auto half = static_cast<uint16_t>(bits);
  return dtype == DType::f16 ? reference::from_f16(half) : reference::from_bf16(half);
}

TEST(AllWithin, FindsASingleBadValueAnywhere) {
  for (const DType dtype : kFloats) {
    const uint32_t infinity = infinity_of(dtype);
    for (size_t count = 0; count <= 140; count += count < 70 ? 1 : 7) {
      Elements elements = {dtype, count % 37, std::vector<uint32_t>(count, infinity - 1)};
      expect_within(true, elements, kLargest);
      for (size_t at = 0; at < count; at += 1 + count / 20) {
        for (const uint32_t bad : {infinity, infinity | sign_of(dtype), infinity + 1, (infinity + 1) | sign_of(dtype)}) {
          elements.bits[at] = bad;
          expect_within(false, elements, kLargest);
        }
        elements.bits[at] = sign_of(dtype);
      }
    }
  }
}

TEST(AllWithin, AcceptsSubnormalsAndLargest) {
  for (const DType dtype : kFloats) {
    expect_within(true, {dtype, 0, std::vector<uint32_t>(100, sign_of(dtype) | 1)}, kLargest);
    expect_within(true, {dtype, 0, std::vector<uint32_t>(100, sign_of(dtype) | (infinity_of(dtype) - 1))}, kLargest);
  }
}

/// The limit may be a value of the dtype, between two values, or below or above all.
TEST(AllWithin, KnowsTheNextValueAboveTheLimit) {
  test::Random random(5);
  for (int64_t i = 0; i < test::cases(3000); ++i) {
    const DType dtype = kFloats[i % 3];
    const int64_t count = length_of_case(random, i) + 1;
    const auto largest = static_cast<uint32_t>(random.below(infinity_of(dtype) - 1));
    const float exact = value_of(dtype, largest);
    const float above = std::nextafter(value_of(dtype, largest + 1), 0.0F);
    const float limit = random.below(2) == 0 ? exact : above;
    Elements elements = {dtype, static_cast<size_t>(random.below(40)), {}};
    for (int64_t k = 0; k < count; ++k) elements.bits.push_back(largest | (random.below(2) == 0 ? 0 : sign_of(dtype)));
    const auto at = static_cast<size_t>(random.below(count));
    expect_within(true, elements, limit);
    elements.bits[at] = (largest + 1) | (random.below(2) == 0 ? 0 : sign_of(dtype));
    expect_within(false, elements, limit);
  }
}

TEST(Stream, CopiesWhatItIsGivenAndNothingElse) {
  test::Random random(6);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t nbytes = length_of_case(random, i);
    const auto from = static_cast<size_t>(random.below(70));
    const auto to = static_cast<size_t>(random.below(70));
    std::vector<uint8_t> values(static_cast<size_t>(nbytes) + 140);
    for (uint8_t &value : values) value = static_cast<uint8_t>(random.below(256));
    std::vector<uint8_t> expected(values.size(), 0xee);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), nbytes, expected.begin() + static_cast<std::ptrdiff_t>(to));
    for (const Table *table : supported()) {
      std::vector<uint8_t> out(values.size(), 0xee);
      table->stream(out.data() + to, values.data() + from, nbytes);
      table->flush();
      EXPECT_EQ(out, expected) << table->target << " " << nbytes << " bytes";
    }
  }
}

TEST(Scale, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(3);
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = length_of_case(random, i);
    const auto offset = static_cast<size_t>(random.below(8));
    const auto factor = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
    const std::vector<float> values = special_values(random, count + 16);
    std::vector<float> expected = values;
    reference_table().scale(expected.data() + offset, values.data() + offset, count, factor);
    for (const Table *table : supported()) {
      std::vector<float> in_place = values;
      std::vector<float> out = values;
      table->scale(in_place.data() + offset, in_place.data() + offset, count, factor);
      table->scale(out.data() + offset, values.data() + offset, count, factor);
      ASSERT_EQ(bits_of(in_place), bits_of(expected)) << table->target << " count " << count;
      ASSERT_EQ(bits_of(out), bits_of(expected)) << table->target << " count " << count;
    }
  }
}

TEST(Scale, RoundsTheExactProductOnce) {
  test::Random random(4);
  const std::vector<float> values = random.values(1000, 60);
  std::vector<float> out(values.size());
  for (const float factor : {0.1F, -3.0F, 0x1p-100F, 1.0F, 0.0F}) {
    reference_table().scale(out.data(), values.data(), 1000, factor);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(double{values[i]} * factor));
  }
  const float nan = -kNan;
  reference_table().scale(out.data(), &nan, 1, 1);
  EXPECT_EQ(std::bit_cast<uint32_t>(out[0]), 0x7fc00000U);
}

TEST(Add, EveryTargetHasTheBitsOfTheReferenceWhichRoundsOnce) {
  test::Random random(8);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = length_of_case(random, i);
    const std::vector<float> a = i % 2 == 0 ? special_values(random, count + 8) : random.values(count + 8, 30);
    const std::vector<float> b = i % 2 == 0 ? special_values(random, count + 8) : random.values(count + 8, 30);
    std::vector<float> expected = a;
    for (size_t j = 0; j < static_cast<size_t>(count); ++j) {
      const double sum = double{a[j]} + double{b[j]};  // rounding to fp64 before rounding to fp32 changes nothing: 53 >= 2 * 24 + 2
      expected[j] = std::isnan(sum) ? kNan : static_cast<float>(sum);
    }
    for (const Table *table : supported()) {
      std::vector<float> in_place = a;
      table->add(in_place.data(), in_place.data(), b.data(), count);
      ASSERT_EQ(bits_of(in_place), bits_of(expected)) << table->target << " count " << count;
    }
  }
}

TEST(Clamp, LimitsEveryValueAndKeepsNan) {
  test::Random random(9);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = length_of_case(random, i);
    const float limit = i % 4 == 0 ? kInfinity : std::fabs(random.value(8));
    const std::vector<float> values = i % 2 == 0 ? special_values(random, count + 8) : random.values(count + 8, 8);
    std::vector<float> expected = values;
    for (size_t j = 0; j < static_cast<size_t>(count); ++j) {
      expected[j] = std::isnan(values[j]) ? kNan : std::copysign(std::fmin(std::fabs(values[j]), limit), values[j]);
    }
    for (const Table *table : supported()) {
      std::vector<float> in_place = values;
      table->clamp(in_place.data(), in_place.data(), count, limit);
      ASSERT_EQ(bits_of(in_place), bits_of(expected)) << table->target << " count " << count << " limit " << limit;
    }
  }
}

TEST(Average, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(12);
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = length_of_case(random, i);
    const std::vector<float> before = i % 2 == 0 ? special_values(random, count + 8) : random.values(count + 8, 8);
    const std::vector<float> values = i % 2 == 0 ? special_values(random, count + 8) : random.values(count + 8, 8);
    std::vector<float> expected = before;
    reference_table().average(expected.data(), values.data(), count, 0.01F);
    for (const Table *table : supported()) {
      std::vector<float> actual = before;
      table->average(actual.data(), values.data(), count, 0.01F);
      ASSERT_EQ(bits_of(actual), bits_of(expected)) << table->target << " count " << count;
    }
  }
}

/// Each step rounds a difference of at most 2 and the result of at most 1, each with an error of at
/// most 2^-24 relative. So it adds an error of at most (2 * 0.01 + 1) * 2^-24, and the earlier
/// error shrinks by 0.99: the sum stays below 102 * 2^-24. The constant 0.01 is off by 2^-24
/// relative, which adds at most 0.02 * 2^-24 per step, 2 * 2^-24 in all.
TEST(Average, StaysCloseToFloat64ForAThousandSteps) {
  test::Random random(13);
  std::vector<float> average = random.values(300, 4);
  std::vector<double> exact(average.begin(), average.end());
  for (int step = 0; step < 1000; ++step) {
    const std::vector<float> values = random.values(300, 4);
    reference_table().average(average.data(), values.data(), 300, 0.01F);
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] = 0.99 * exact[i] + 0.01 * values[i];
      ASSERT_NEAR(average[i], exact[i], 104 * 0x1p-24);
    }
  }
}

double squares(const Table &table, const void *values, DType dtype, int64_t count) {
  ExactSum sum;
  table.add_squares(values, dtype, count, sum);
  return sum.total();
}

/// Any bits, or numbers of magnitudes below 2.
Elements random_elements(test::Random &random, int64_t count, bool any) {
  Elements elements = {kFloats[random.below(3)], static_cast<size_t>(random.below(37)), std::vector<uint32_t>(static_cast<size_t>(count))};
  const bool wide = elements.dtype == DType::f32;
  const int mantissa_bits = wide ? 23 : elements.dtype == DType::f16 ? 10 : 7;
  const uint32_t two = wide ? 0x40000000 : 0x4000;
  for (uint32_t &bits : elements.bits) {
    bits = any ? static_cast<uint32_t>(random.special_bits(wide ? 32 : 16, mantissa_bits))
               : static_cast<uint32_t>(random.below(two)) | (random.below(2) != 0 ? sign_of(elements.dtype) : 0);
  }
  return elements;
}

TEST(AddSquares, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(5);
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = length_of_case(random, i);
    const Elements elements = random_elements(random, count, i % 2 == 0);
    const std::vector<uint8_t> stored = elements.stored();
    const uint8_t *values = stored.data() + elements.skip * static_cast<size_t>(dtype_nbytes(elements.dtype));
    const auto expected = std::bit_cast<uint64_t>(squares(reference_table(), values, elements.dtype, count));
    for (const Table *table : supported()) {
      ASSERT_EQ(std::bit_cast<uint64_t>(squares(*table, values, elements.dtype, count)), expected)
          << table->target << " " << dtype_name(elements.dtype) << " count " << count;
    }
  }
}

/// Squares are exact in float64. Each of the 32 + 3 additions of a line, and the final rounding, is
/// off by at most 2^-53 of the sum. The long double sum below is off by less than 2^-53 for 10,000
/// terms.
TEST(AddSquares, AgreesWithLongDouble) {
  test::Random random(6);
  for (const int64_t count : {0, 1, 7, 255, 256, 257, 1000, 10000}) {
    for (int i = 0; i < 10; ++i) {
      Elements elements = random_elements(random, count, false);
      elements.skip = 0;
      long double expected = 0;
      for (const uint32_t bits : elements.bits) {
        const float value = value_of(elements.dtype, bits);
        expected += static_cast<long double>(value) * value;
      }
      const auto rounded = static_cast<double>(expected);
      EXPECT_NEAR(squares(reference_table(), elements.stored().data(), elements.dtype, count), rounded, 37 * 0x1p-53 * rounded);
    }
  }
}

TEST(AddSquares, DoesNotDependOnCutsAtLines) {
  test::Random random(7);
  constexpr int64_t kCount = 20 * kLine + 13;
  const std::vector<float> values = random.values(kCount, 30);
  const double expected = squares(active(), values.data(), DType::f32, kCount);
  for (int i = 0; i < 50; ++i) {
    ExactSum parts[4];
    for (int64_t at = 0; at < kCount;) {
      const int64_t end = std::min(kCount, at + kLine * (1 + random.below(5)));
      active().add_squares(values.data() + at, DType::f32, end - at, parts[random.below(4)]);
      at = end;
    }
    for (int part = 1; part < 4; ++part) parts[0].merge(parts[part]);
    ASSERT_EQ(parts[0].total(), expected);
  }
}

}  // namespace
}  // namespace zero::kernels::elementwise_test
