/// @file Kernels on several threads: neither the number of threads nor the caller's floating-point environment may change bits.
#include "engine/compute/host_kernels.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace zero::test::host_kernels_test {
namespace {

std::vector<float> values_of(uint64_t stream, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value_at(5, stream, i) * (i % 7 == 0 ? 0x1p-130F : 1.0F));
  return values;
}

struct Results {
  std::vector<float> sums, params, scaled, copied, masters;
  std::vector<uint16_t> narrow;
  double squares = 0;
};

struct Inputs {
  explicit Inputs(int64_t elements)
      : count(elements), a(values_of(1, count)), b(values_of(2, count)), c(values_of(3, count)), moment(values_of(4, count)) {}
  int64_t count;
  std::vector<float> a, b, c, moment;
};

Results compute(const Inputs &inputs, int64_t threads) {
  Results results;
  const auto &[count, a, b, c, first_moment] = inputs;
  const void *sources[3] = {a.data(), b.data(), c.data()};
  results.sums.resize(a.size());
  EXPECT_TRUE(HostReducer(threads).reduce({results.sums.data(), sources, 3, count, DType::f32, ReduceOp::sum, 3}));
  const HostKernels host(threads);
  results.params = a;
  std::vector<float> moment = first_moment;
  std::vector<float> square(a.size(), 0.25F);
  host.over_lines(count, [&](Range range) {
    const kernels::Slots piece{results.params.data() + range.begin,
                               b.data() + range.begin,
                               {moment.data() + range.begin, square.data() + range.begin},
                               range.count()};
    kernels::active().adam(piece, kernels::find_algorithm("adamw")->constants({0.01, 0, 0, 0, 0.9, 0.999, 1e-8, 0.01, 3}));
  });
  results.scaled.resize(a.size());
  if (count > 0) {
    host.scale(results.scaled.data(), a.data(), count, 0.3F);
    host.add(results.scaled.data(), DType::f32, b.data(), DType::f32, count, 0.7F);
    EXPECT_TRUE(host.all_within(a.data(), DType::f32, count));
  }
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<uint16_t> narrow(a.size());
    host.convert(narrow.data(), dtype, a.data(), DType::f32, count);
    host.add(narrow.data(), dtype, b.data(), DType::f32, count, 1.5F);
    results.narrow.insert(results.narrow.end(), narrow.begin(), narrow.end());
    std::vector<float> masters = a;
    host.follow(masters.data(), narrow.data(), dtype, count);
    results.masters.insert(results.masters.end(), masters.begin(), masters.end());
  }
  kernels::ExactSum sum;
  host.add_squares(results.sums.data(), DType::f32, count, sum);
  host.add_squares(results.narrow.data(), DType::bf16, count, sum);
  results.squares = sum.total();
  return results;
}

void expect_same(const Results &a, const Results &b) {
  EXPECT_EQ(differing(a.sums, b.sums), 0);
  EXPECT_EQ(differing(a.params, b.params), 0);
  EXPECT_EQ(differing(a.scaled, b.scaled), 0);
  EXPECT_EQ(differing(a.masters, b.masters), 0);
  EXPECT_EQ(a.narrow, b.narrow);
  EXPECT_EQ(a.squares, b.squares);
}

TEST(HostKernels, ThreadsDoNotChangeBits) {
  for (const int64_t count : {0, 1, 255, 257, 70'001, 200'000}) {
    const Inputs inputs(count);
    const Results one = compute(inputs, 1);
    for (const int64_t threads : {2, 3, 7, 100}) expect_same(one, compute(inputs, threads));
  }
}

TEST(HostKernels, TheCallersFloatingPointEnvironmentDoesNotChangeBitsAndStays) {
  const Inputs inputs(70'001);
  const Results usual = compute(inputs, 3);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
  constexpr unsigned int kFlush = 0x8040;  // flush to zero, subnormals are zero
  _mm_setcsr(_mm_getcsr() | kFlush);
#endif
  const Results unusual = compute(inputs, 3);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
#if defined(__x86_64__)
  EXPECT_EQ(_mm_getcsr() & kFlush, kFlush);
  _mm_setcsr(_mm_getcsr() & ~kFlush);
#endif
  std::fesetround(FE_TONEAREST);
  expect_same(usual, unusual);
}

TEST(HostKernels, MastersFollowOnlyParametersTheyDoNotRoundTo) {
  const HostKernels host(2);
  std::vector<float> masters;
  for (int64_t i = 0; i < 5000; ++i) masters.push_back(value_at(9, 9, i));
  const std::vector<float> before = masters;
  std::vector<uint16_t> params(masters.size());
  host.convert(params.data(), DType::bf16, masters.data(), DType::f32, 5000);
  host.follow(masters.data(), params.data(), DType::bf16, 5000);
  EXPECT_EQ(differing(masters, before), 0);
  for (size_t i = 0; i < params.size(); i += 3) params[i] ^= 1;
  host.follow(masters.data(), params.data(), DType::bf16, 5000);
  std::vector<float> values(masters.size());
  host.convert(values.data(), DType::f32, params.data(), DType::bf16, 5000);
  for (size_t i = 0; i < masters.size(); ++i) EXPECT_EQ(masters[i], i % 3 == 0 ? values[i] : before[i]) << i;
}

TEST(HostKernels, CopiesAreWhatWasCopiedWhereverItGoes) {
  constexpr int64_t kCount = 150'001;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const auto element = static_cast<size_t>(dtype_nbytes(dtype));
    std::vector<std::byte> values(kCount * element);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 7 % 59);
    for (const int64_t threads : {1, 3}) {
      for (const int64_t total_nbytes : {int64_t{0}, kernels::kStreamedNbytes + 1}) {
        for (const size_t shift : {size_t{0}, 3 * element}) {
          std::vector<std::byte> expected(values.size() + shift + element, std::byte{0xee});
          std::copy(values.begin(), values.end(), expected.begin() + static_cast<std::ptrdiff_t>(shift));
          std::vector<std::byte> copied(expected.size(), std::byte{0xee});
          std::vector<std::byte> looked_at = copied;
          HostKernels(threads).copy(copied.data() + shift, values.data(), dtype, kCount, total_nbytes);
          EXPECT_TRUE(
              HostKernels(threads).copy_within(looked_at.data() + shift, values.data(), dtype, kCount, kLargestFinite, total_nbytes));
          EXPECT_TRUE(copied == expected) << dtype_name(dtype) << " " << threads << " threads, of " << total_nbytes;
          EXPECT_TRUE(looked_at == expected) << dtype_name(dtype) << " " << threads << " threads, of " << total_nbytes;
        }
      }
    }
  }
}

TEST(HostKernels, ConversionsPastTheCachesHaveTheSameBits) {
  constexpr int64_t kCount = 150'001;
  const std::vector<float> wide = values_of(6, kCount);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<std::byte> values(kCount * static_cast<size_t>(dtype_nbytes(dtype)));
    HostKernels(1).convert(values.data(), dtype, wide.data(), DType::f32, kCount);
    for (const DType out_dtype : {DType::f32, DType::f16, DType::bf16}) {
      const auto element = static_cast<size_t>(dtype_nbytes(out_dtype));
      for (const int64_t threads : {1, 3}) {
        for (const size_t shift : {size_t{0}, 3 * element}) {
          std::vector<std::byte> plain(kCount * element + shift + element, std::byte{0xee});
          std::vector<std::byte> streamed = plain;
          HostKernels(threads).convert(plain.data() + shift, out_dtype, values.data(), dtype, kCount);
          HostKernels(threads).convert(streamed.data() + shift, out_dtype, values.data(), dtype, kCount, kernels::kStreamedNbytes + 1);
          EXPECT_TRUE(plain == streamed) << dtype_name(dtype) << " to " << dtype_name(out_dtype) << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(HostKernels, NonFiniteValuesAreFoundWhereverTheyAre) {
  const HostKernels host(3);
  std::vector<float> values(150'000, 1.0F);
  std::vector<float> copy(values.size());
  for (size_t at = 0; at < values.size(); at += 12'345) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      values[at] = bad;
      EXPECT_FALSE(host.all_within(values.data(), DType::f32, 150'000));
      EXPECT_FALSE(host.copy_within(copy.data(), values.data(), DType::f32, 150'000, kLargestFinite, kernels::kStreamedNbytes + 1));
      values[at] = 1.0F;
    }
  }
  EXPECT_TRUE(host.all_within(values.data(), DType::f32, 150'000));
}

TEST(HostThreads, FollowKeyVariableAndCores) {
  Config config;
  ::unsetenv("ZERO_THREADS");
  EXPECT_GE(host_threads(config, {0, 1, 1}), 1);
  EXPECT_EQ(host_threads(config, {0, 4096, 1, 4096}), 1);
  EXPECT_EQ(host_threads(config, {0, 4096, 1, 1}), usable_cores()) << "the others are bound to other cores";
  ::setenv("ZERO_THREADS", "5", 1);
  EXPECT_EQ(host_threads(config, {0, 1, 1}), 5);
  ASSERT_TRUE(config.set_i64(ZERO_KEY_THREADS, 3).ok());
  EXPECT_EQ(host_threads(config, {0, 1, 1}), 3);
  ::unsetenv("ZERO_THREADS");
}

TEST(HostKernels, WeightedSumsOfTwoDoNotDependOnWhichCameFirst) {
  const HostKernels host(1);
  constexpr int64_t kCount = 5000;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const float weight : {1.0F, 3.0F, 0.7F}) {
      std::vector<std::byte> values[2];
      std::vector<float> sums[2];
      for (uint64_t which = 0; which < 2; ++which) {
        std::vector<float> numbers;
        for (int64_t i = 0; i < kCount; ++i) numbers.push_back(value_at(7, which, i));
        values[which] = encode(numbers, dtype);
      }
      for (size_t first = 0; first < 2; ++first) {
        sums[first].resize(kCount);
        host.convert(sums[first].data(), DType::f32, values[first].data(), dtype, kCount);
        host.scale(sums[first].data(), sums[first].data(), kCount, weight);
        host.add(sums[first].data(), DType::f32, values[1 - first].data(), dtype, kCount, weight);
      }
      EXPECT_TRUE(sums[0] == sums[1]) << dtype_name(dtype) << " weight " << weight;
    }
  }
}

TEST(HostReducer, WhatGoesPastTheCachesHasTheSameBits) {
  const HostReducer reducer(2);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
    for (const int64_t count : {0, 1, 15, 1024, 5003, 100'001}) {
      for (const size_t shift : {size_t{0}, size_t{8}}) {
        const auto nbytes = static_cast<size_t>(count * dtype_nbytes(dtype));
        std::vector<std::byte> values[2];
        for (size_t which = 0; which < 2; ++which) {
          for (size_t i = 0; i < nbytes; ++i) values[which].push_back(static_cast<std::byte>((i * 37 + which * 11) % 61));
        }
        const void *sources[2] = {values[0].data(), values[1].data()};
        std::vector<std::byte> plain(nbytes);
        std::vector<std::byte> streamed(nbytes + shift, std::byte{0x55});
        Reduction reduction{plain.data(), sources, 2, count, dtype, ReduceOp::sum, 3};
        const bool finite = reducer.reduce(reduction);
        reduction.out = streamed.data() + shift;
        reduction.total_nbytes = kernels::kStreamedNbytes + 1;
        EXPECT_EQ(reducer.reduce(reduction), finite);
        EXPECT_TRUE(std::equal(plain.begin(), plain.end(), streamed.begin() + static_cast<std::ptrdiff_t>(shift)))
            << dtype_name(dtype) << count;
        // In place: one of the sources takes the result.
        reduction.out = values[1].data();
        EXPECT_EQ(reducer.reduce(reduction), finite);
        EXPECT_TRUE(plain == values[1]) << dtype_name(dtype) << count;
        std::vector<std::byte> copy(nbytes + shift);
        reducer.copy(copy.data() + shift, plain.data(), static_cast<int64_t>(nbytes), kernels::kStreamedNbytes + 1);
        EXPECT_TRUE(std::equal(plain.begin(), plain.end(), copy.begin() + static_cast<std::ptrdiff_t>(shift)));
      }
    }
  }
}

}  // namespace
}  // namespace zero::test::host_kernels_test
