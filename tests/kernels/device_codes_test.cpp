/// @file 8-bit parameters on a device: codes, scales, values and lines that agree() changes have
/// the bits of the plain host kernels.
#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace zero::kernels::device_codes_test {
namespace {

using test::DeviceMemory;
using test::Random;

const Table &plain() { return *supported().front(); }

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr DType kCodes[] = {DType::f8e4m3, DType::f8ue5m3};
constexpr int64_t kCounts[] = {0, 1, 2, 3, 4, 5, 63, 255, 256, 257, 511, 512, 1023, 1024, 1025, 40'000};

int64_t random_count(Random &random) { return random.below(2) == 0 ? kCounts[random.below(std::size(kCounts))] : random.below(3000); }
size_t lines_of(int64_t count) { return static_cast<size_t>((count + kLine - 1) / kLine); }

/// Lines of numbers, of any bits, of numbers with a few special values, of subnormals, and of
/// zeros.
std::vector<float> random_values(Random &random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  const auto any_bits = [&random] { return std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23))); };
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t kind = random.below(8);
    for (int64_t i = begin; i < std::min(begin + kLine, count); ++i) {
      float &value = values[static_cast<size_t>(i)];
      value = random.value(12);
      if (kind == 0 || (kind == 1 && random.below(64) == 0)) value = any_bits();
      if (kind == 2) value *= 0x1p-130F;
      if (kind == 3) value *= 0;
    }
  }
  return values;
}

/// `count` elements, and one more behind them that kernels must not change.
template <class Element>
std::vector<Element> with_one_more(std::vector<Element> values, Element last) {
  values.push_back(last);
  return values;
}

/// Codes of a slot with their scales, each with one extra element at the end.
struct Coded {
  explicit Coded(int64_t count) : codes(static_cast<size_t>(count) + 1, 0x5a), scales(lines_of(count) + 1, 7.0F) {}
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

/// NaN has its one form.
bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class DeviceCodes : public test::DeviceKernels {
 protected:
  static int64_t number(DType dtype) { return static_cast<int64_t>(dtype); }

  cuda::Elements place(DeviceMemory &memory, Coded &coded, DType dtype) {
    return {memory.place(coded.codes, test::random_offset(random_, dtype)), memory.place(coded.scales), number(dtype)};
  }
  DType random_float() { return kFloats[random_.below(3)]; }
  DType random_code() { return kCodes[random_.below(2)]; }

  Random random_{73};
};

TEST_F(DeviceCodes, AreThoseOfTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = random_count(random_);
    const DType dtype = random_float();
    const DType code_dtype = random_code();
    std::vector<uint8_t> stored(static_cast<size_t>(count * dtype_nbytes(dtype)) + 1);
    const std::vector<float> given = random_values(random_, count);
    narrow(plain(), stored.data(), dtype, given.data(), count);
    if (dtype == DType::f32 && count > 0) std::memcpy(stored.data(), given.data(), static_cast<size_t>(count) * sizeof(float));
    std::vector<float> wide(static_cast<size_t>(count));
    widen(plain(), wide.data(), stored.data(), dtype, count);
    Coded expected(count);
    Coded actual(count);
    plain().encode(expected.codes.data(), expected.scales.data(), code_dtype, wide.data(), count, nullptr);
    const void *from = memory.place(stored, test::random_offset(random_, dtype));
    const cuda::Elements to = place(memory, actual, code_dtype);
    memory.upload();
    ASSERT_EQ(kernels_->encode(0, &to, from, number(dtype), count, nullptr, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(actual.codes, expected.codes) << dtype_name(dtype) << " as " << dtype_name(code_dtype) << " count " << count;
    ASSERT_TRUE(same_bits(actual.scales, expected.scales)) << dtype_name(dtype) << " as " << dtype_name(code_dtype) << " count " << count;
  }
}

TEST_F(DeviceCodes, AreNotMadeInStepsThatAreSkipped) {
  for (const int64_t skips : {0, 1}) {
    DeviceMemory memory;
    std::vector<float> values = random_.values(1000, 3);
    std::vector<StepState> run(1);
    run[0].skips = skips;
    Coded actual(1000);
    const Coded before(1000);
    const float *from = memory.place(values);
    const StepState *known = memory.place(run);
    const cuda::Elements to = place(memory, actual, DType::f8e4m3);
    memory.upload();
    ASSERT_EQ(kernels_->encode(0, &to, from, number(DType::f32), 1000, known, memory.stream()), 0);
    memory.download();
    EXPECT_EQ(actual.codes == before.codes, skips == 1);
    EXPECT_EQ(same_bits(actual.scales, before.scales), skips == 1);
  }
}

TEST_F(DeviceCodes, AreDecodedAsOnTheHost) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = random_count(random_);
    const DType dtype = random_float();
    const DType code_dtype = random_code();
    Coded coded(count);
    for (uint8_t &code : coded.codes) code = static_cast<uint8_t>(random_.next());
    coded.scales = random_values(random_, std::ssize(coded.scales));
    std::vector<float> values(static_cast<size_t>(count));
    plain().decode(values.data(), coded.codes.data(), coded.scales.data(), code_dtype, count);
    std::vector<uint8_t> actual(static_cast<size_t>((count + 1) * dtype_nbytes(dtype)), 0x5a);
    std::vector<uint8_t> expected = actual;
    narrow(plain(), expected.data(), dtype, values.data(), count);
    const cuda::Elements from = place(memory, coded, code_dtype);
    void *to = memory.place(actual, test::random_offset(random_, dtype));
    memory.upload();
    ASSERT_EQ(kernels_->decode(0, to, number(dtype), &from, count, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(actual, expected) << dtype_name(code_dtype) << " as " << dtype_name(dtype) << " count " << count;
  }
}

/// Each line is one of four cases: the codes are those of the masters, the masters are the values
/// of the codes, one code differs, or the scale differs.
TEST_F(DeviceCodes, AgreeWithMastersWhicheverLead) {
  DeviceMemory memory;
  int64_t followed = 0;
  int64_t kept = 0;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = random_count(random_);
    const DType code_dtype = random_code();
    const bool masters_lead = random_.below(2) == 0;
    std::vector<float> actual = with_one_more(random_values(random_, count), 7.0F);
    Coded coded(count);
    plain().encode(coded.codes.data(), coded.scales.data(), code_dtype, actual.data(), count, nullptr);
    std::vector<float> expected = actual;
    Coded expected_codes = coded;
    for (int64_t begin = 0; begin < count; begin += kLine) {
      const int64_t part = std::min(kLine, count - begin);
      const int64_t kind = random_.below(4);
      float *masters = &actual[static_cast<size_t>(begin)];
      uint8_t *codes = &coded.codes[static_cast<size_t>(begin)];
      float &scale = coded.scales[static_cast<size_t>(begin / kLine)];
      if (kind == 0) codes[random_.below(part)] ^= static_cast<uint8_t>(1 << random_.below(8));
      if (kind == 1 || kind == 2) scale = std::bit_cast<float>(std::bit_cast<uint32_t>(scale) ^ (1U << random_.below(32)));
      if (kind == 2) plain().decode(masters, codes, &scale, code_dtype, part);
      float values[kLine];
      plain().decode(values, codes, &scale, code_dtype, part);
      const bool agree = kind == 3 || std::memcmp(values, masters, static_cast<size_t>(part) * sizeof(float)) == 0;
      ++(agree ? kept : followed);
      const bool codes_stay = agree || !masters_lead;
      std::memcpy(&expected[static_cast<size_t>(begin)], codes_stay && !agree ? values : masters,
                  static_cast<size_t>(part) * sizeof(float));
      if (codes_stay) {
        std::memcpy(&expected_codes.codes[static_cast<size_t>(begin)], codes, static_cast<size_t>(part));
        expected_codes.scales[static_cast<size_t>(begin / kLine)] = scale;
      }
    }
    float *masters = memory.place(actual, test::random_offset(random_, DType::f32));
    const cuda::Elements codes = place(memory, coded, code_dtype);
    memory.upload();
    ASSERT_EQ(kernels_->agree(0, masters, &codes, count, masters_lead ? 1 : 0, memory.stream()), 0);
    memory.download();
    ASSERT_TRUE(same_bits(actual, expected)) << dtype_name(code_dtype) << " count " << count;
    ASSERT_TRUE(coded.codes == expected_codes.codes) << dtype_name(code_dtype) << " count " << count;
    ASSERT_TRUE(same_bits(coded.scales, expected_codes.scales)) << dtype_name(code_dtype) << " count " << count;
  }
  std::printf("%lld lines followed, %lld stayed\n", static_cast<long long>(followed), static_cast<long long>(kept));
}

/// Each value is the rounding of its master, a neighbour of it, or any bits.
TEST_F(DeviceCodes, ValuesAreFollowedByMastersThatDoNotRoundToThem) {
  DeviceMemory memory;
  for (int64_t i = 0; i < test::cases(4000); ++i) {
    const int64_t count = random_count(random_);
    const DType dtype = random_float();
    const auto element = static_cast<size_t>(dtype_nbytes(dtype));
    std::vector<float> actual = with_one_more(random_values(random_, count), 7.0F);
    std::vector<float> expected = actual;
    std::vector<uint8_t> rounded((static_cast<size_t>(count) + 1) * element);
    narrow(plain(), rounded.data(), dtype, actual.data(), count);
    std::vector<uint8_t> given = rounded;
    for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
      const int64_t kind = random_.below(8);
      if (kind == 0) given[k * element] ^= 1;
      if (kind == 1) std::generate_n(&given[k * element], element, [&] { return static_cast<uint8_t>(random_.next()); });
    }
    std::vector<float> wide(static_cast<size_t>(count));
    widen(plain(), wide.data(), given.data(), dtype, count);
    for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
      if (std::memcmp(&given[k * element], &rounded[k * element], element) != 0) std::memcpy(&expected[k], &wide[k], sizeof(float));
    }
    float *masters = memory.place(actual, test::random_offset(random_, DType::f32));
    const void *values = memory.place(given, test::random_offset(random_, dtype));
    memory.upload();
    ASSERT_EQ(kernels_->follow(0, masters, values, number(dtype), count, memory.stream()), 0);
    memory.download();
    ASSERT_TRUE(same_bits(actual, expected)) << dtype_name(dtype) << " count " << count;
  }
}

}  // namespace
}  // namespace zero::kernels::device_codes_test
