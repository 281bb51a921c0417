/// @file Matrix products and Muon on a device: the bits of the plain table, and of kernels/muon.h
/// with it, for all storages and shapes.
#include "kernels/muon.h"

#include "tests/kernels/device_pieces.h"
#include "tests/kernels/products.h"

#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::kernels::device_muon_test {
namespace {

using test::DeviceMemory;
using test::Random;
using test::Slots;
using test::Told;

std::vector<uint32_t> bits_of(const std::vector<float> &values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

/// Any bits, or values so small that sums of products vanish with either sign, or plain ones.
std::vector<float> random_elements(Random &random, int64_t count, int64_t kind) {
  std::vector<float> values = random.values(count, 8);
  for (float &value : values) {
    if (kind == 1) value = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
    if (kind == 2) value = std::ldexp(value, -80);
  }
  return values;
}

struct Sides {
  int64_t rows, inner, columns;
};

void mirror(std::vector<float> &values, int64_t side) {
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t j = 0; j < i; ++j) values[static_cast<size_t>(i * side + j)] = values[static_cast<size_t>(j * side + i)];
  }
}

class DeviceMultiply : public test::DeviceKernels {
 protected:
  /// The extra element behind the product must stay unchanged.
  void compare(const Sides &sides, int64_t kind, bool adds, bool symmetric = false) {
    const auto [rows, inner, columns] = sides;
    std::vector<float> a = random_elements(random, rows * inner, kind);
    std::vector<float> b = symmetric ? test::transposed(a, rows, inner) : random_elements(random, inner * columns, kind);
    std::vector<float> addend = random_elements(random, rows * columns, kind);
    if (symmetric) mirror(addend, rows);
    std::vector<float> expected(static_cast<size_t>(rows * columns) + 1, 7.0F);
    std::vector<float> actual = expected;
    test::plain().multiply(expected.data(), a.data(), b.data(), rows, inner, columns, test::product_workspace());
    if (adds) test::plain().combine(expected.data(), 0.7F, addend.data(), -1.3F, rows * columns);
    const auto offset = [this] { return test::random_offset(random, DType::f32); };
    DeviceMemory memory;
    cuda::Product call = {.out = memory.place(actual, offset()),
                          .a = memory.place(a, offset()),
                          .b = memory.place(b, offset()),
                          .rows = rows,
                          .inner = inner,
                          .columns = columns};
    if (adds) call.addend = memory.place(addend, offset());
    call.factor = 0.7F;
    call.weight = -1.3F;
    call.symmetric = symmetric;
    memory.upload();
    ASSERT_EQ(kernels_->multiply(0, &call, memory.stream()), 0);
    memory.download();
    ASSERT_EQ(bits_of(actual), bits_of(expected))
        << rows << " x " << inner << " x " << columns << " kind " << kind << (adds ? " added" : "") << (symmetric ? " symmetric" : "");
  }

  Random random{74};
};

TEST_F(DeviceMultiply, ProductsHaveTheBitsOfTheHost) {
  constexpr int64_t kSides[] = {0, 1, 3, 4, 15, 16, 17, 32, 63, 64, 65, 127, 128, 129, 140, 261};
  const auto side = [&] { return random.below(3) == 0 ? kSides[random.below(std::size(kSides))] : random.below(50); };
  int64_t products = 0;
  for (; products < test::cases(3000); ++products) {
    ASSERT_NO_FATAL_FAILURE(compare({side(), side(), side()}, products % 3, random.below(2) == 0));
  }
  ASSERT_NO_FATAL_FAILURE(compare({261, 140, 257}, 0, true));
  std::printf("%lld products compared\n", static_cast<long long>(products));
}

TEST_F(DeviceMultiply, SymmetricProductsHaveTheBitsOfTheHost) {
  constexpr int64_t kSides[] = {0, 1, 4, 63, 64, 65, 127, 128, 129, 140, 256, 261, 385};
  for (int64_t i = 0; i < test::cases(600); ++i) {
    const int64_t side = random.below(3) == 0 ? kSides[random.below(std::size(kSides))] : random.below(150);
    ASSERT_NO_FATAL_FAILURE(compare({side, random.below(60), side}, i % 3, random.below(2) == 0, true));
  }
}

TEST_F(DeviceMultiply, NothingIsMadeOfWhatIsSkipped) {
  std::vector<float> a(4, 1);
  std::vector<float> out(4, 7);
  std::vector<int64_t> skips = {1};
  DeviceMemory memory;
  const float *values = memory.place(a);
  cuda::Product call = {.out = memory.place(out), .a = values, .b = values, .rows = 2, .inner = 2, .columns = 2};
  call.skips = memory.place(skips);
  memory.upload();
  ASSERT_EQ(kernels_->multiply(0, &call, memory.stream()), 0);
  memory.download();
  EXPECT_EQ(out, std::vector<float>(4, 7));
}

class DeviceMuon : public test::DeviceKernels {
 protected:
  void step_on_device(Slots &slots, int64_t rows, int64_t columns, const Told &told) {
    const int32_t algorithm = kernels_->algorithm("muon");
    ASSERT_GE(algorithm, 0);
    std::vector<Slots> all = {slots};
    DeviceMemory memory;
    test::Call call(memory, all, {told}, algorithm, random);
    const auto elements = static_cast<size_t>(muon_workspace(rows, columns));
    std::vector<float> workspace(elements, std::numeric_limits<float>::quiet_NaN());
    std::vector<cuda::DirectionSum> sum(1);
    const cuda::Matrix matrix = {.update = call.update,
                                 .scalars = call.update.scalars,
                                 .rows = rows,
                                 .columns = columns,
                                 .newton_schulz_steps = static_cast<int64_t>(told.scalars.hyper.newton_schulz_steps),
                                 .workspace = memory.place(workspace),
                                 .sum = memory.place(sum)};
    memory.upload();
    ASSERT_NO_FATAL_FAILURE(call.prepare(*kernels_));
    ASSERT_EQ(kernels_->muon(0, &matrix, memory.stream()), 0);
    memory.download();
    for (const int64_t word : sum[0].words) ASSERT_EQ(word, 0);
    slots = all[0];
  }

  void compare(const Slots &given, int64_t rows, int64_t columns, const Told &told) {
    Slots expected = given;
    Slots actual = given;
    std::vector<float> workspace(static_cast<size_t>(muon_workspace(rows, columns)));
    if (!told.skips) muon(test::plain(), test::HostPiece(expected).piece, rows, columns, told.scalars, workspace.data());
    ASSERT_NO_FATAL_FAILURE(step_on_device(actual, rows, columns, told));
    ASSERT_EQ(actual, expected) << actual.text() << ", " << rows << " x " << columns;
  }

  Slots random_matrix(int64_t rows, int64_t columns) {
    Slots slots = test::random_slots(random, rows * columns);
    slots.scalars = 0;
    return slots;
  }

  Told random_told() {
    Told told = test::random_told(random);
    told.scalars.hyper.momentum = random.below(4) == 0 ? 0.3 : 0.95;
    told.scalars.hyper.newton_schulz_steps = static_cast<double>(1 + random.below(5));
    return told;
  }

  Random random{75};
};

TEST_F(DeviceMuon, EveryStorageAndShapeHasTheBitsOfTheHost) {
  constexpr Sides kShapes[] = {{1, 0, 1},   {1, 0, 2000}, {2000, 0, 1}, {40, 0, 26}, {26, 0, 40},
                               {32, 0, 64}, {0, 0, 5},    {5, 0, 0},    {33, 0, 33}};
  int64_t updates = 0;
  for (; updates < test::cases(3000); ++updates) {
    Sides shape = {1 + random.below(30), 0, 1 + random.below(30)};
    if (updates < std::ssize(kShapes)) shape = kShapes[updates];
    if (updates % 40 == 10) shape = {1 + random.below(150), 0, 1 + random.below(150)};
    ASSERT_NO_FATAL_FAILURE(compare(random_matrix(shape.rows, shape.columns), shape.rows, shape.columns, random_told()));
  }
  std::printf("%lld updates compared\n", static_cast<long long>(updates));
}

TEST_F(DeviceMuon, DirectionsMayBeZeroOrNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {0.0F, -0.0F, 1e-45F, 3e38F, std::numeric_limits<float>::infinity(), nan}) {
    for (const double epsilon : {0.0, 1e-7, 1e30}) {
      Slots slots;
      slots.count = 12 * 7;
      slots.param = test::random_slot(random, DType::f32, slots.count, false);
      slots.grad = test::random_slot(random, DType::f32, slots.count, false);
      slots.state[0] = test::random_slot(random, DType::f32, slots.count, false);
      for (test::Slot *slot : {&slots.grad, &slots.state[0]}) {
        for (size_t i = 0; i + 4 < slot->bytes.size(); i += sizeof value) std::memcpy(&slot->bytes[i], &value, sizeof value);
      }
      Told told = random_told();
      told.skips = false;
      told.scalars.hyper.epsilon = epsilon;
      ASSERT_NO_FATAL_FAILURE(compare(slots, 12, 7, told)) << value;
    }
  }
}

}  // namespace
}  // namespace zero::kernels::device_muon_test
