/// @file Reductions: every target against the reference bit for bit, the reference against an
/// independently written tree, float64 and 64-bit integers.
#include "kernels/kernels.h"
#include "kernels/reference/float_bits.h"

#include "elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace zero::kernels::reduce_test {
namespace {

using test::fraction_nbits;
using test::kDTypes;
using test::kOps;
using test::random_element;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool reference_reduce(const Reduction &reduction) { return supported().front()->reduce(reduction); }

/// Sources of one case, as bytes. Elements around them must stay unchanged.
struct Case {
  DType dtype;
  ReduceOp op;
  int64_t count;
  size_t offset;  ///< elements before the first
  double divisor;
  int64_t total_nbytes;
  /// Storage in 64-bit words, so that every element type is aligned.
  std::vector<std::vector<uint64_t>> sources;

  size_t nbytes() const { return sources[0].size() * 8; }
};

/// The size of the whole: its results stay in the caches, or bypass them.
int64_t any_total(test::Random &random) { return random.below(2) == 0 ? 0 : kStreamedNbytes + 1; }

Case random_case(test::Random &random, int64_t index) {
  Case result = {};
  result.dtype = kDTypes[random.below(7)];
  result.op = kOps[random.below(5)];
  result.count = index <= 70 ? index : random.below(random.below(10) == 0 ? 3000 : 200);
  result.offset = static_cast<size_t>(random.below(8));
  const int64_t source_count = random.below(8) == 0 ? 1 + random.below(70) : 1 + random.below(9);
  const double divisors[] = {1, static_cast<double>(source_count), 3, 8};
  result.divisor = divisors[random.below(4)];
  const bool any_power = fraction_nbits(result.dtype) != 0 && random.below(8) == 0;
  if (any_power) result.divisor = std::ldexp(1.0, static_cast<int>(random.below(240)) - 120);
  const bool tame = random.below(3) != 0;
  result.total_nbytes = any_total(random);
  const auto nbytes = static_cast<size_t>(dtype_nbytes(result.dtype));
  const size_t elements = static_cast<size_t>(result.count) + result.offset + 8;
  for (int64_t s = 0; s < source_count; ++s) {
    std::vector<uint64_t> words((elements * nbytes + 7) / 8);
    for (size_t i = 0; i < elements; ++i) {
      const uint64_t element = random_element(random, result.dtype, tame);
      std::memcpy(reinterpret_cast<char *>(words.data()) + i * nbytes, &element, nbytes);
    }
    result.sources.push_back(words);
  }
  return result;
}

struct Outcome {
  std::vector<uint64_t> out;
  bool finite;
  friend bool operator==(const Outcome &, const Outcome &) = default;
};

/// in_place: the source that is also the output, or -1.
Outcome run(const Table &table, const Case &given, int64_t in_place) {
  Case work = given;
  const size_t skip = given.offset * static_cast<size_t>(dtype_nbytes(given.dtype));
  std::vector<const void *> addresses;
  for (const auto &source : work.sources) addresses.push_back(reinterpret_cast<const char *>(source.data()) + skip);
  std::vector<uint64_t> out = given.sources[0];
  std::vector<uint64_t> &target = in_place < 0 ? out : work.sources[static_cast<size_t>(in_place)];
  if (in_place > 0) target = given.sources[static_cast<size_t>(in_place)];
  const bool finite = table.reduce({.out = reinterpret_cast<char *>(target.data()) + skip,
                                    .sources = addresses.data(),
                                    .source_count = static_cast<int64_t>(addresses.size()),
                                    .count = given.count,
                                    .dtype = given.dtype,
                                    .op = given.op,
                                    .divisor = given.divisor,
                                    .total_nbytes = given.total_nbytes});
  return {target, finite};
}

TEST(Reduce, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(20);
  int64_t compared = 0;
  for (int64_t i = 0; i < test::cases(40000); ++i) {
    const Case given = random_case(random, i);
    const Outcome expected = run(*supported().front(), given, -1);
    const Outcome expected_in_place = run(*supported().front(), given, 0);
    ASSERT_EQ(expected, expected_in_place);
    for (const Table *table : supported()) {
      ASSERT_EQ(run(*table, given, -1), expected) << table->target << " " << dtype_name(given.dtype) << " " << reduce_name(given.op)
                                                  << " count " << given.count << " sources " << given.sources.size() << " case " << i;
      ASSERT_EQ(run(*table, given, 0), expected) << "in place: " << table->target << " case " << i;
      compared += 2;
    }
  }
  std::printf("%lld reductions compared\n", static_cast<long long>(compared));
}

/// Elements of a 16-bit float as fp32. NaN has one form.
std::vector<float> as_f32(const std::vector<uint16_t> &elements, DType dtype) {
  std::vector<float> values;
  for (const uint16_t bits : elements) {
    values.push_back(reference::canonical(dtype == DType::f16 ? reference::from_f16(bits) : reference::from_bf16(bits)));
  }
  return values;
}

/// The parameters of a reduction with 16-bit floats and fp32.
struct Shape {
  int64_t count;
  int64_t source_count;
  DType dtype;  ///< the 16-bit dtype
  ReduceOp op;
  bool tame;
  size_t skip;  ///< elements before the first result
  int64_t total_nbytes;
};

Shape random_shape(test::Random &random, int64_t i) {
  Shape shape{};
  shape.count = i <= 70 ? i : random.below(1500);
  shape.source_count = 1 + random.below(i % 5 == 0 ? 70 : 9);
  shape.dtype = i % 2 == 0 ? DType::f16 : DType::bf16;
  shape.op = kOps[random.below(5)];
  shape.tame = random.below(2) == 0;
  shape.skip = static_cast<size_t>(random.below(40));
  shape.total_nbytes = any_total(random);
  return shape;
}

TEST(Reduce, SumsOfHalvesStoredAsF32AreThoseOfTheSameValuesInF32) {
  test::Random random(23);
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const auto [count, source_count, dtype, op, tame, skip, total_nbytes] = random_shape(random, i);
    std::vector<std::vector<uint16_t>> narrow(static_cast<size_t>(source_count));
    std::vector<std::vector<float>> wide;
    std::vector<const void *> narrow_addresses;
    std::vector<const void *> wide_addresses;
    for (auto &source : narrow) {
      for (int64_t j = 0; j < count; ++j) source.push_back(static_cast<uint16_t>(random_element(random, dtype, tame)));
      wide.push_back(as_f32(source, dtype));
      narrow_addresses.push_back(source.data());
    }
    for (const auto &source : wide) wide_addresses.push_back(source.data());
    // Elements around the results must stay unchanged.
    const auto elements = skip + static_cast<size_t>(count) + 1;
    std::vector<uint32_t> expected(elements, 7);
    const bool finite = reference_reduce({expected.data() + skip, wide_addresses.data(), source_count, count, DType::f32, op, 3.0});
    for (const Table *table : supported()) {
      std::vector<uint32_t> out(elements, 7);
      ASSERT_EQ(table->reduce({out.data() + skip, narrow_addresses.data(), source_count, count, dtype, op, 3.0, DType::f32, total_nbytes}),
                finite);
      ASSERT_EQ(out, expected) << table->target << " " << dtype_name(dtype) << " " << reduce_name(op) << " case " << i;
    }
  }
}

/// Weights as from counts and loss scales, multiplied by powers of ten.
std::vector<float> random_weights(test::Random &random, int64_t count) {
  std::vector<float> weights;
  for (int64_t i = 0; i < count; ++i) {
    const auto whole = static_cast<double>(random.below(5));
    weights.push_back(static_cast<float>(whole * std::pow(10.0, static_cast<double>(random.below(13) - 6))));
  }
  return weights;
}

TEST(Reduce, WeightedSumsOfHalvesAreThoseOfTheProductsInF32) {
  test::Random random(25);
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const auto [count, source_count, dtype, op, tame, skip, total_nbytes] = random_shape(random, i);
    const std::vector<float> weights = random_weights(random, source_count);
    std::vector<std::vector<uint16_t>> halves(static_cast<size_t>(source_count));
    std::vector<std::vector<float>> products;
    std::vector<const void *> addresses;
    std::vector<const void *> product_addresses;
    for (auto &source : halves) {
      for (int64_t j = 0; j < count; ++j) source.push_back(static_cast<uint16_t>(random_element(random, dtype, tame)));
      products.push_back(as_f32(source, dtype));
      for (float &value : products.back()) value *= weights[products.size() - 1];
      addresses.push_back(source.data());
    }
    for (const auto &source : products) product_addresses.push_back(source.data());
    // Elements around the results must stay unchanged.
    const auto elements = skip + static_cast<size_t>(count) + 1;
    std::vector<uint32_t> wide(elements, 7);
    std::vector<uint16_t> narrow(elements, 7);
    const bool wide_finite =
        reference_reduce({wide.data() + skip, product_addresses.data(), source_count, count, DType::f32, ReduceOp::sum, 3.0});
    const bool narrow_finite =
        reference_reduce({narrow.data() + skip, product_addresses.data(), source_count, count, DType::f32, ReduceOp::sum, 3.0, dtype});
    for (const Table *table : supported()) {
      std::vector<uint32_t> wide_out(elements, 7);
      std::vector<uint16_t> narrow_out(elements, 7);
      Reduction call{wide_out.data() + skip, addresses.data(), source_count, count,         dtype,
                     ReduceOp::sum,          3.0,              DType::f32,   total_nbytes, weights.data()};
      ASSERT_EQ(table->reduce(call), wide_finite);
      ASSERT_EQ(wide_out, wide) << table->target << " " << dtype_name(dtype) << " case " << i;
      call.out = narrow_out.data() + skip;
      call.out_dtype = DType{};
      ASSERT_EQ(table->reduce(call), narrow_finite);
      ASSERT_EQ(narrow_out, narrow) << table->target << " " << dtype_name(dtype) << " case " << i;
    }
  }
}

TEST(Reduce, SumsOfF32StoredAsHalvesAreRoundedOnce) {
  test::Random random(24);
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const auto [count, source_count, dtype, op, tame, skip, total_nbytes] = random_shape(random, i);
    std::vector<std::vector<uint32_t>> sources(static_cast<size_t>(source_count));
    std::vector<const void *> addresses;
    for (auto &source : sources) {
      for (int64_t j = 0; j < count; ++j) source.push_back(static_cast<uint32_t>(random_element(random, DType::f32, tame)));
      addresses.push_back(source.data());
    }
    std::vector<float> sums(static_cast<size_t>(count));
    reference_reduce({sums.data(), addresses.data(), source_count, count, DType::f32, op, 3.0});
    std::vector<uint16_t> halves;
    for (const float sum : sums) halves.push_back(dtype == DType::f16 ? reference::to_f16(sum) : reference::to_bf16(sum));
    const std::vector<float> rounded = as_f32(halves, dtype);
    const bool finite = std::all_of(rounded.begin(), rounded.end(), [](float value) { return std::isfinite(value); });
    // Elements around the results must stay unchanged.
    std::vector<uint16_t> expected(skip + halves.size() + 1, 7);
    std::copy(halves.begin(), halves.end(), expected.begin() + static_cast<std::ptrdiff_t>(skip));
    for (const Table *table : supported()) {
      std::vector<uint16_t> out(expected.size(), 7);
      ASSERT_EQ(table->reduce({out.data() + skip, addresses.data(), source_count, count, DType::f32, op, 3.0, dtype, total_nbytes}),
                finite);
      ASSERT_EQ(out, expected) << table->target << " " << dtype_name(dtype) << " " << reduce_name(op) << " case " << i;
    }
  }
}

TEST(Reduce, OutputMayBeAnySource) {
  test::Random random(21);
  for (int64_t i = 71; i < 71 + test::cases(2000); ++i) {
    const Case given = random_case(random, i);
    const auto in_place = random.below(static_cast<int64_t>(given.sources.size()));
    const Outcome expected = run(*supported().front(), given, in_place);
    for (const Table *table : supported()) ASSERT_EQ(run(*table, given, in_place), expected) << table->target << " case " << i;
  }
}

/// The tree as a binary counter: complete subtrees of equal size merge as leaves arrive, and the
/// rest merges from the right.
float counter_tree(const std::vector<float> &leaves) {
  struct Subtree {
    float sum;
    size_t size;
  };
  std::vector<Subtree> stack;
  const auto merge_last_two = [&] {
    const Subtree right = stack.back();
    stack.pop_back();
    stack.back() = {stack.back().sum + right.sum, stack.back().size + right.size};
  };
  for (const float leaf : leaves) {
    stack.push_back({leaf, 1});
    while (stack.size() >= 2 && stack[stack.size() - 2].size == stack.back().size) merge_last_two();
  }
  while (stack.size() >= 2) merge_last_two();
  return stack[0].sum;
}

TEST(Reduce, SumsFollowTheTreeAndStayCloseToFloat64) {
  test::Random random(22);
  constexpr int64_t kCount = 67;
  for (int64_t source_count = 1; source_count <= 40; ++source_count) {
    std::vector<std::vector<float>> sources;
    std::vector<const void *> addresses;
    for (int64_t s = 0; s < source_count; ++s) sources.push_back(random.values(kCount, 20));
    for (const auto &source : sources) addresses.push_back(source.data());
    for (const Table *table : supported()) {
      std::vector<float> out(kCount);
      EXPECT_TRUE(table->reduce({out.data(), addresses.data(), source_count, kCount, DType::f32, ReduceOp::avg, 3.0}));
      for (size_t i = 0; i < kCount; ++i) {
        std::vector<float> leaves;
        double exact = 0;
        double magnitude = 0;
        for (const auto &source : sources) {
          leaves.push_back(source[i]);
          exact += source[i];
          magnitude += std::fabs(source[i]);
        }
        ASSERT_EQ(out[i], counter_tree(leaves) / 3.0F) << table->target << " sources " << source_count;
        // The tree is at most 6 deep for 40 sources; each level and the division round once.
        ASSERT_NEAR(out[i], exact / 3, 7.1 * 0x1p-24 * magnitude / 3);
      }
    }
  }
}

template <typename T>
std::vector<T> reduce_values(DType dtype, ReduceOp op, const std::vector<std::vector<T>> &sources, double divisor, bool *finite = nullptr) {
  std::vector<const void *> addresses;
  for (const auto &source : sources) addresses.push_back(source.data());
  std::vector<T> out(sources[0].size());
  const auto source_count = static_cast<int64_t>(sources.size());
  const auto count = static_cast<int64_t>(out.size());
  const bool result = reference_reduce({out.data(), addresses.data(), source_count, count, dtype, op, divisor});
  if (finite != nullptr) *finite = result;
  return out;
}

TEST(Reduce, ProductsMinimaAndMaximaOfFloat64) {
  const std::vector<std::vector<double>> sources = {{1.5, -2, 8}, {4, 0.25, -1}, {-3, 5, 0.5}};
  EXPECT_EQ(reduce_values(DType::f64, ReduceOp::prod, sources, 1), (std::vector<double>{-18, -2.5, -4}));
  EXPECT_EQ(reduce_values(DType::f64, ReduceOp::min, sources, 1), (std::vector<double>{-3, -2, -1}));
  EXPECT_EQ(reduce_values(DType::f64, ReduceOp::max, sources, 1), (std::vector<double>{4, 5, 8}));
  EXPECT_EQ(reduce_values(DType::f64, ReduceOp::sum, sources, 1), (std::vector<double>{2.5, 3.25, 7.5}));
  EXPECT_EQ(reduce_values(DType::f64, ReduceOp::avg, sources, 2), (std::vector<double>{1.25, 1.625, 3.75}));
}

TEST(Reduce, NanWinsAndMinusZeroIsBelowZero) {
  const std::vector<std::vector<float>> sources = {{-0.0F, 0.0F, kNan, 1.0F}, {0.0F, -0.0F, 1.0F, -kNan}};
  const auto bits = [&](ReduceOp op) {
    std::vector<uint32_t> result;
    for (const float value : reduce_values(DType::f32, op, sources, 1)) result.push_back(std::bit_cast<uint32_t>(value));
    return result;
  };
  EXPECT_EQ(bits(ReduceOp::min), (std::vector<uint32_t>{0x80000000, 0x80000000, 0x7fc00000, 0x7fc00000}));
  EXPECT_EQ(bits(ReduceOp::max), (std::vector<uint32_t>{0, 0, 0x7fc00000, 0x7fc00000}));
  EXPECT_EQ(bits(ReduceOp::sum), (std::vector<uint32_t>{0, 0, 0x7fc00000, 0x7fc00000}));
}

TEST(Reduce, TellsWhetherAllOutputsAreFinite) {
  constexpr uint16_t kLargestF16 = 0x7bff;
  bool finite = false;
  reduce_values<uint16_t>(DType::f16, ReduceOp::sum, {{kLargestF16}, {0x4bff}}, 1, &finite);  // 65504 + 15.99 rounds down
  EXPECT_TRUE(finite);
  reduce_values<uint16_t>(DType::f16, ReduceOp::sum, {{kLargestF16}, {0x4c00}}, 1, &finite);  // 65504 + 16 rounds to infinity
  EXPECT_FALSE(finite);
  const float largest = std::numeric_limits<float>::max();
  reduce_values<float>(DType::f32, ReduceOp::sum, {{1, largest}, {1, largest}}, 1, &finite);
  EXPECT_FALSE(finite);
  reduce_values<float>(DType::f32, ReduceOp::max, {{1, largest}, {1, largest}}, 1, &finite);
  EXPECT_TRUE(finite);
  reduce_values<float>(DType::f32, ReduceOp::avg, {{1, kNan}, {1, 1}}, 2, &finite);
  EXPECT_FALSE(finite);
}

TEST(Reduce, IntegersWrapAndAveragesAreCutTowardsZero) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  const std::vector<std::vector<int32_t>> i32 = {{kMax, -7, kMax}, {kMax, 0, 3}};
  EXPECT_EQ(reduce_values(DType::i32, ReduceOp::sum, i32, 1), (std::vector<int32_t>{-2, -7, static_cast<int32_t>(0x80000002U)}));
  EXPECT_EQ(reduce_values(DType::i32, ReduceOp::avg, i32, 2), (std::vector<int32_t>{kMax, -3, (1 << 30) + 1}));
  EXPECT_EQ(reduce_values(DType::i32, ReduceOp::prod, i32, 1), (std::vector<int32_t>{1, 0, kMax - 2}));
  const std::vector<std::vector<int64_t>> i64 = {{kMax64, kMin64, -9}, {1, kMin64, 2}};
  EXPECT_EQ(reduce_values(DType::i64, ReduceOp::sum, i64, 1), (std::vector<int64_t>{kMin64, 0, -7}));
  EXPECT_EQ(reduce_values(DType::i64, ReduceOp::avg, i64, 2), (std::vector<int64_t>{kMin64 / 2, 0, -3}));
  EXPECT_EQ(reduce_values(DType::i64, ReduceOp::min, i64, 1), (std::vector<int64_t>{1, kMin64, -9}));
  const std::vector<std::vector<uint8_t>> u8 = {{200, 16, 255}, {100, 17, 0}, {1, 1, 7}};
  EXPECT_EQ(reduce_values(DType::u8, ReduceOp::sum, u8, 1), (std::vector<uint8_t>{45, 34, 6}));
  EXPECT_EQ(reduce_values(DType::u8, ReduceOp::avg, u8, 3), (std::vector<uint8_t>{100, 11, 87}));
  EXPECT_EQ(reduce_values(DType::u8, ReduceOp::max, u8, 1), (std::vector<uint8_t>{200, 17, 255}));
  EXPECT_EQ(reduce_values(DType::u8, ReduceOp::prod, u8, 1), (std::vector<uint8_t>{32, 16, 0}));
}

/// The value of a binary16 number that is not NaN or infinite, from its definition.
double f16_value(int bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Formats, EveryHalfIsReadAndEveryTieIsRoundedToEven) {
  for (int bits = 0; bits < 0x7c00; ++bits) {
    ASSERT_EQ(reference::from_f16(static_cast<uint16_t>(bits)), f16_value(bits));
    ASSERT_EQ(reference::from_f16(static_cast<uint16_t>(bits | 0x8000)), -f16_value(bits));
    const auto next = bits == 0x7bff ? 65536.0 : f16_value(bits + 1);
    const auto tie = static_cast<float>((f16_value(bits) + next) / 2);
    ASSERT_EQ(reference::to_f16(static_cast<float>(f16_value(bits))), bits);
    ASSERT_EQ(reference::to_f16(tie), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(reference::to_f16(std::nextafter(tie, 0.0F)), bits);
    ASSERT_EQ(reference::to_f16(-std::nextafter(tie, 1e30F)), (bits + 1) | 0x8000);
  }
  EXPECT_EQ(reference::to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(reference::to_f16(kNan), 0x7e00);
  EXPECT_EQ(reference::to_f16(1e30F), 0x7c00);
}

TEST(Formats, EveryBfloat16IsReadAndEveryTieIsRoundedToEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const auto value = std::bit_cast<float>(bits << 16);
    const auto tie = std::bit_cast<float>((bits << 16) | 0x8000);
    ASSERT_EQ(reference::from_bf16(static_cast<uint16_t>(bits)), value);
    ASSERT_EQ(reference::to_bf16(value), bits);
    ASSERT_EQ(reference::to_bf16(tie), bits + (bits & 1));
    ASSERT_EQ(reference::to_bf16(std::nextafter(tie, 0.0F)), bits);
    ASSERT_EQ(reference::to_bf16(-std::bit_cast<float>((bits << 16) | 0x8001)), (bits + 1) | 0x8000);
  }
  EXPECT_EQ(reference::to_bf16(std::bit_cast<float>(reference::kCanonicalNan32)), 0x7fc0);
}

}  // namespace
}  // namespace zero::kernels::reduce_test
