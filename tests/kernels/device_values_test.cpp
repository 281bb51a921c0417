/// @file Checks, copies, sums of two, conversions and norms on a device: the bits of the plain host
/// kernels.
#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

namespace zero::kernels::device_values_test {
namespace {

using test::DeviceMemory;
using test::Random;

const Table &plain() { return *supported().front(); }

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr int64_t kCounts[] = {0, 1, 2, 3, 4, 5, 7, 255, 256, 257, 1023, 1024, 1025, 40000};
constexpr float kLargest = std::numeric_limits<float>::max();

using Bytes = std::vector<uint8_t>;

int64_t any_count(Random &random) { return random.below(2) == 0 ? kCounts[random.below(std::size(kCounts))] : random.below(3000); }
DType random_float(Random &random) { return kFloats[random.below(3)]; }

/// Makes one element more than requested. A kernel must not change it in its output.
Bytes random_values(Random &random, DType dtype, int64_t count, bool special) {
  Bytes bytes(static_cast<size_t>((count + 1) * dtype_nbytes(dtype)));
  std::vector<float> values(static_cast<size_t>(count) + 1);
  for (float &value : values) value = special ? std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23))) : random.value(12);
  narrow(plain(), bytes.data(), dtype, values.data(), count + 1);
  if (special && dtype != DType::f32) {
    auto *bits = reinterpret_cast<uint16_t *>(bytes.data());
    for (int64_t i = 0; i <= count; ++i) bits[i] = static_cast<uint16_t>(random.special_bits(16, dtype == DType::f16 ? 10 : 7));
  } else if (special) {
    auto *bits = reinterpret_cast<uint32_t *>(bytes.data());
    for (int64_t i = 0; i <= count; ++i) bits[i] = static_cast<uint32_t>(random.special_bits(32, 23));
  }
  return bytes;
}

std::vector<float> as_f32(const Bytes &bytes, DType dtype, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  widen(plain(), values.data(), bytes.data(), dtype, count);
  return values;
}

void put(Bytes &bytes, DType dtype, const std::vector<float> &values) {
  narrow(plain(), bytes.data(), dtype, values.data(), std::ssize(values));
}

bool within(const Bytes &bytes, DType dtype, int64_t count, float limit) { return plain().all_within(bytes.data(), dtype, count, limit); }

class DeviceValues : public test::DeviceKernels {
 protected:
  int64_t offset(DType dtype) { return test::random_offset(random, dtype); }

  int64_t dtype_number(DType dtype) { return static_cast<int64_t>(dtype); }

  Random random{71};
};

TEST_F(DeviceValues, ChecksFindWhatTheHostFinds) {
  DeviceMemory memory;
  int64_t found = 0;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = any_count(random);
    const DType dtype = random_float(random);
    Bytes values = random_values(random, dtype, count, false);
    // One value that is odd, at any place; the element behind the last one does not count.
    const bool special = random.below(2) == 0;
    const int64_t at = random.below(count + 1);
    const Bytes odd = random_values(random, dtype, 1, true);
    if (special) std::copy_n(odd.begin(), dtype_nbytes(dtype), values.begin() + at * dtype_nbytes(dtype));
    const float limit = random.below(2) == 0 ? kLargest : 2.0F;
    const Bytes before = random_values(random, dtype, count, false);
    Bytes copied = before;
    std::vector<int32_t> flags = {0, 0};
    const void *from = memory.place(values, offset(dtype));
    void *to = memory.place(copied, offset(dtype));
    int32_t *places = memory.place(flags);
    memory.upload();
    ASSERT_EQ(kernels_->all_within(0, from, dtype_number(dtype), count, limit, places, memory.stream()), 0);
    ASSERT_EQ(kernels_->copy_within(0, to, from, dtype_number(dtype), count, limit, places + 1, memory.stream()), 0);
    memory.download();
    const int32_t wanted = within(values, dtype, count, limit) ? 0 : 1;
    found += wanted;
    ASSERT_EQ(flags, (std::vector<int32_t>{wanted, wanted})) << dtype_name(dtype) << " count " << count << " odd at " << at;
    Bytes expected = values;
    std::copy(before.end() - dtype_nbytes(dtype), before.end(), expected.end() - dtype_nbytes(dtype));
    ASSERT_EQ(copied, expected) << dtype_name(dtype) << " count " << count;
  }
  std::printf("%lld times something was found\n", static_cast<long long>(found));
}

TEST_F(DeviceValues, FlagsStayRaised) {
  DeviceMemory memory;
  std::vector<float> values(10, 1.0F);
  std::vector<int32_t> flag = {1};
  const float *at = memory.place(values);
  int32_t *flag_place = memory.place(flag);
  memory.upload();
  ASSERT_EQ(kernels_->all_within(0, at, dtype_number(DType::f32), 10, kLargest, flag_place, memory.stream()), 0);
  memory.download();
  EXPECT_EQ(flag[0], 1);
}

TEST_F(DeviceValues, ConversionsHaveTheBitsOfTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = any_count(random);
    const DType dtype = random_float(random);
    const DType out_dtype = random_float(random);
    Bytes values = random_values(random, dtype, count, random.below(2) == 0);
    Bytes actual = random_values(random, out_dtype, count, false);
    Bytes expected = actual;
    if (dtype == out_dtype) {
      std::copy_n(values.begin(), count * dtype_nbytes(dtype), expected.begin());
    } else {
      put(expected, out_dtype, as_f32(values, dtype, count));
    }
    const void *from = memory.place(values, offset(dtype));
    void *to = memory.place(actual, offset(out_dtype));
    memory.upload();
    ASSERT_EQ(kernels_->convert(0, to, dtype_number(out_dtype), from, dtype_number(dtype), count, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(actual, expected) << dtype_name(dtype) << " to " << dtype_name(out_dtype) << " count " << count;
  }
}

TEST_F(DeviceValues, ScalingHasTheBitsOfTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = any_count(random);
    const float factor = random.below(4) == 0 ? 1.0F : random.value(20) * 100;
    Bytes values = random_values(random, DType::f32, count, random.below(2) == 0);
    const bool in_place = random.below(2) == 0;
    Bytes actual = in_place ? values : random_values(random, DType::f32, count, false);
    Bytes expected = actual;
    std::vector<float> scaled = as_f32(values, DType::f32, count);
    plain().scale(scaled.data(), scaled.data(), count, factor);
    put(expected, DType::f32, scaled);
    void *to = memory.place(actual, offset(DType::f32));
    const void *from = in_place ? to : memory.place(values, offset(DType::f32));
    memory.upload();
    ASSERT_EQ(kernels_->scale(0, static_cast<float *>(to), static_cast<const float *>(from), count, factor, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(actual, expected) << "count " << count << " factor " << factor;
  }
}

TEST_F(DeviceValues, AddingHasTheBitsOfTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = any_count(random);
    const DType dtype = random_float(random);
    const DType sum_dtype = random_float(random);
    const float factor = random.below(3) == 0 ? 1.0F : random.value(20);
    const bool special = random.below(2) == 0;
    Bytes values = random_values(random, dtype, count, special);
    Bytes actual = random_values(random, sum_dtype, count, special);
    Bytes expected = actual;
    std::vector<float> addends = as_f32(values, dtype, count);
    if (factor != 1) plain().scale(addends.data(), addends.data(), count, factor);
    std::vector<float> sums = as_f32(expected, sum_dtype, count);
    plain().add(sums.data(), sums.data(), addends.data(), count);
    put(expected, sum_dtype, sums);
    void *to = memory.place(actual, offset(sum_dtype));
    const void *from = memory.place(values, offset(dtype));
    memory.upload();
    ASSERT_EQ(kernels_->add(0, to, dtype_number(sum_dtype), from, dtype_number(dtype), count, factor, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(actual, expected) << dtype_name(dtype) << " to " << dtype_name(sum_dtype) << " count " << count << " factor " << factor;
  }
}

TEST_F(DeviceValues, SquaresAreThoseOfTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(2000); ++i) {
    const int64_t count = i % 20 == 0 ? 60000 + random.below(40000) : any_count(random);
    const DType dtype = random_float(random);
    const int64_t kind = random.below(8);  // mostly numbers; any bits hold infinities and NaN, one value of them one of these at most
    Bytes values = random_values(random, dtype, count, kind == 0);
    const Bytes odd = random_values(random, dtype, 1, true);
    if (kind == 1) std::copy_n(odd.begin(), dtype_nbytes(dtype), values.begin() + random.below(count + 1) * dtype_nbytes(dtype));
    ExactSum expected;
    plain().add_squares(values.data(), dtype, count, expected);
    expected.merge(expected);
    std::vector<int64_t> words(cuda::kSquareWords);
    const void *from = memory.place(values, offset(dtype));
    int64_t *at = memory.place(words);
    memory.upload();
    for (int64_t twice = 0; twice < 2; ++twice) {
      ASSERT_EQ(kernels_->add_squares(0, from, dtype_number(dtype), count, at, memory.stream()), 0);
    }
    memory.download();
    int64_t wanted[ExactSum::kExported];
    int64_t got[ExactSum::kExported];
    expected.export_limbs(wanted);
    ExactSum::import_limbs(words.data()).export_limbs(got);
    ASSERT_TRUE(std::equal(std::begin(wanted), std::end(wanted), std::begin(got))) << dtype_name(dtype) << " count " << count;
  }
}

TEST_F(DeviceValues, LongRangesAreWhole) {
  const int64_t count = 5000 * 1024 + 1025;
  DeviceMemory memory;
  std::vector<float> values(static_cast<size_t>(count) + 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<float> out(values.size(), -1.0F);
  const float *from = memory.place(values);
  float *to = memory.place(out);
  memory.upload();
  ASSERT_EQ(kernels_->add(0, to, dtype_number(DType::f32), from, dtype_number(DType::f32), count, 1.0F, memory.stream()), 0);
  memory.download();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) ASSERT_EQ(out[i], static_cast<float>(i) - 1) << i;
  EXPECT_EQ(out.back(), -1.0F);
}

}  // namespace
}  // namespace zero::kernels::device_values_test
