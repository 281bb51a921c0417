/// @file Reductions on a device: the bits of the plain host kernel, for every dtype and operation.
#include "elements.h"
#include "kernels/kernels.h"
#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::kernels::device_reduce_test {
namespace {

using test::DeviceMemory;
using test::kDTypes;
using test::kOps;
using test::Random;

using Bytes = std::vector<uint8_t>;

constexpr int64_t kCounts[] = {0, 1, 2, 3, 4, 5, 7, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2049, 3000};
constexpr int64_t kPairs = std::size(kDTypes) * std::size(kOps);

/// One reduction. Its memory has one extra element that must stay unchanged.
struct Case {
  DType dtype;
  DType out_dtype;
  ReduceOp op;
  int64_t count;
  double divisor;
  int64_t in_place;  ///< the source that is the output too; -1: none
  std::vector<Bytes> sources;
  Bytes out;
  std::vector<float> weights = {};  ///< empty: none

  const float *weights_or_none() const { return weights.empty() ? nullptr : weights.data(); }
};

void put_element(Bytes &bytes, DType dtype, int64_t index, uint64_t element) {
  std::memcpy(bytes.data() + index * dtype_nbytes(dtype), &element, static_cast<size_t>(dtype_nbytes(dtype)));
}

Bytes random_bytes(Random &random, DType dtype, int64_t count, bool tame) {
  Bytes bytes(static_cast<size_t>((count + 1) * dtype_nbytes(dtype)));
  for (int64_t i = 0; i <= count; ++i) put_element(bytes, dtype, i, test::random_element(random, dtype, tame));
  return bytes;
}

DType random_out_dtype(Random &random, DType dtype) {
  constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
  if (random.below(2) == 0) return dtype;
  if (dtype == DType::f32) return kFloats[random.below(3)];
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

/// Cases [0, 64 * kPairs) are all dtypes and operations with all numbers of sources.
Case random_case(Random &random, int64_t index) {
  Case result = {};
  result.dtype = kDTypes[static_cast<size_t>(index) % std::size(kDTypes)];
  result.op = kOps[static_cast<size_t>(index % kPairs) / std::size(kDTypes)];
  result.out_dtype = random_out_dtype(random, result.dtype);
  result.count = random.below(2) == 0 ? kCounts[random.below(std::size(kCounts))] : random.below(1500);
  const int64_t source_count = index % cuda::kMostSources + 1;
  const double divisors[] = {1, static_cast<double>(source_count), 3, 8};
  result.divisor = divisors[random.below(4)];
  result.in_place = result.dtype == result.out_dtype && random.below(2) == 0 ? random.below(source_count) : -1;
  const bool tame = random.below(3) != 0;
  for (int64_t s = 0; s < source_count; ++s) result.sources.push_back(random_bytes(random, result.dtype, result.count, tame));
  result.out = random_bytes(random, result.out_dtype, result.count, true);
  const bool may_weigh = result.op == ReduceOp::sum && (result.dtype == DType::f16 || result.dtype == DType::bf16);
  if (!may_weigh || random.below(2) == 0) return result;
  for (int64_t s = 0; s < source_count; ++s) {
    const auto exponent = static_cast<int>(random.below(40)) - 20;
    result.weights.push_back(std::ldexp(static_cast<float>(random.below(1000)), exponent));
  }
  return result;
}

/// On the host; true: all is finite.
bool run_plain(Case &work) {
  std::vector<const void *> addresses;
  for (const Bytes &source : work.sources) addresses.push_back(source.data());
  Bytes &out = work.in_place < 0 ? work.out : work.sources[static_cast<size_t>(work.in_place)];
  return supported().front()->reduce({.out = out.data(),
                                      .sources = addresses.data(),
                                      .source_count = std::ssize(addresses),
                                      .count = work.count,
                                      .dtype = work.dtype,
                                      .op = work.op,
                                      .divisor = work.divisor,
                                      .out_dtype = work.out_dtype,
                                      .weights = work.weights_or_none()});
}

cuda::Reduce call_of(const Case &work, void *out, const std::vector<const void *> &sources) {
  return {.out = out,
          .out_dtype = static_cast<int64_t>(work.out_dtype),
          .sources = sources.data(),
          .source_count = std::ssize(sources),
          .dtype = static_cast<int64_t>(work.dtype),
          .count = work.count,
          .op = static_cast<int64_t>(work.op),
          .divisor = work.divisor,
          .weights = work.weights_or_none()};
}

class DeviceReduce : public test::DeviceKernels {
 protected:
  /// On the device. `flag` nullptr: none is given.
  void run(Case &work, std::vector<int32_t> *flag) {
    DeviceMemory memory;
    std::vector<const void *> places;
    for (Bytes &source : work.sources) places.push_back(memory.place(source, test::random_offset(random, work.dtype)));
    void *own = memory.place(work.out, test::random_offset(random, work.out_dtype));
    int32_t *flag_place = flag != nullptr ? memory.place(*flag) : nullptr;
    const cuda::Reduce call =
        call_of(work, work.in_place < 0 ? own : const_cast<void *>(places[static_cast<size_t>(work.in_place)]), places);
    memory.upload();
    ASSERT_EQ(kernels_->reduce(0, &call, flag_place, memory.stream()), 0);
    memory.download();
  }

  /// `name` identifies the case in error messages.
  void compare(const Case &given, int64_t name) {
    Case expected = given;
    Case actual = given;
    const bool finite = run_plain(expected);
    std::vector<int32_t> flag = {0};
    const bool has_flag = random.below(4) != 0;
    ASSERT_NO_FATAL_FAILURE(run(actual, has_flag ? &flag : nullptr));
    ASSERT_TRUE(actual.out == expected.out && actual.sources == expected.sources)
        << dtype_name(given.dtype) << " to " << dtype_name(given.out_dtype) << " " << reduce_name(given.op) << " count " << given.count
        << " sources " << given.sources.size() << " in place " << given.in_place << " case " << name;
    ASSERT_EQ(flag[0], has_flag && !finite ? 1 : 0) << dtype_name(given.dtype) << " " << reduce_name(given.op) << " case " << name;
    infinite += finite ? 0 : 1;
    weighted += given.weights.empty() ? 0 : 1;
  }

  Random random{72};
  int64_t infinite = 0;  ///< cases with outputs that are not finite
  int64_t weighted = 0;
};

TEST_F(DeviceReduce, ResultsHaveTheBitsOfTheHost) {
  const int64_t cases = test::cases(9000);
  for (int64_t i = 0; i < cases; ++i) ASSERT_NO_FATAL_FAILURE(compare(random_case(random, i), i));
  EXPECT_GT(weighted, 0);
  std::printf("%lld of %lld reductions had outputs that are not finite, %lld had weights\n", static_cast<long long>(infinite),
              static_cast<long long>(cases), static_cast<long long>(weighted));
}

/// NaN of both signs, infinities, zeros, the largest and the least numbers, and 1.
std::vector<uint64_t> odd_elements(DType dtype) {
  const int nbits = static_cast<int>(dtype_nbytes(dtype)) * 8;
  const uint64_t sign = uint64_t{1} << (nbits - 1);
  const uint64_t fraction = (uint64_t{1} << test::fraction_nbits(dtype)) - 1;
  const uint64_t infinity = (sign - 1) & ~fraction;
  const uint64_t one = (infinity >> 1) & ~fraction;
  std::vector<uint64_t> elements;
  for (const uint64_t magnitude : {infinity | 1, infinity | fraction, infinity, uint64_t{0}, uint64_t{1}, fraction, infinity - 1, one}) {
    elements.push_back(magnitude);
    elements.push_back(magnitude | sign);
  }
  return elements;
}

TEST_F(DeviceReduce, OddValuesMeetAsOnTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::vector<uint64_t> odd = odd_elements(dtype);
    const auto kinds = std::ssize(odd);
    for (const ReduceOp op : kOps) {
      for (const int64_t source_count : {1, 2, 3}) {
        Case given = {dtype, dtype, op, kinds * kinds * kinds, 1, -1, {}, {}};
        for (int64_t s = 0, period = 1; s < source_count; ++s, period *= kinds) {
          given.sources.push_back(random_bytes(random, dtype, given.count, true));
          for (int64_t i = 0; i < given.count; ++i)
            put_element(given.sources.back(), dtype, i, odd[static_cast<size_t>(i / period % kinds)]);
        }
        given.out = random_bytes(random, dtype, given.count, true);
        ASSERT_NO_FATAL_FAILURE(compare(given, source_count));
      }
    }
  }
}

TEST_F(DeviceReduce, AFlagIsRaisedOnlyByOutputs) {
  constexpr uint32_t kInfinity = 0x7f800000;
  Case given = {DType::f32, DType::f32, ReduceOp::min, 1, 1, -1, {Bytes(8), Bytes(8)}, Bytes(8)};
  put_element(given.sources[0], DType::f32, 0, kInfinity);
  std::vector<int32_t> flag = {0};
  run(given, &flag);
  EXPECT_EQ(flag[0], 0);
  given.op = ReduceOp::max;
  run(given, &flag);
  EXPECT_EQ(flag[0], 1);
  given.op = ReduceOp::min;
  run(given, &flag);
  EXPECT_EQ(flag[0], 1) << "a flag is never cleared";
}

/// More blocks than run at once on a device.
TEST_F(DeviceReduce, LongRangesAreWhole) {
  const int64_t count = 5000 * 1024 + 1025;
  std::vector<uint8_t> first(static_cast<size_t>(count) + 1);
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<uint8_t>(i % 251);
  Case given = {DType::u8, DType::u8, ReduceOp::sum, count, 1, 1, {first, Bytes(first.size(), 1)}, {}};
  run(given, nullptr);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) ASSERT_EQ(given.sources[1][i], i % 251 + 1) << i;
  EXPECT_EQ(given.sources[1].back(), 1);
}

}  // namespace
}  // namespace zero::kernels::device_reduce_test
