/// @file LAMB on a device: the bits of kernels/lamb.h with the plain table, whatever the storage,
/// the sources, and the cut of a tensor.
#include "kernels/lamb.h"

#include "tests/kernels/device_pieces.h"

#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::kernels::device_lamb_test {
namespace {

using test::DeviceMemory;
using test::Random;
using test::Slots;
using test::Told;

/// Pieces of tensors: piece i belongs to tensor i / 2, whose pieces share their scalars.
constexpr size_t kPieces = 2;

/// All passes over one tensor.
void step_on_host(Slots *first, Slots *last, UpdateScalars scalars) {
  ExactSum param;
  ExactSum direction;
  for (Slots *slots = first; slots != last; ++slots) {
    ExactSum parts[2];
    const test::HostPiece host(*slots);
    lamb_moments(test::plain(), host.piece, scalars);
    lamb_add_norms(test::plain(), host.piece, scalars, parts[0], parts[1]);
    param.merge(parts[0]);
    direction.merge(parts[1]);
  }
  scalars.hyper.trust_ratio = lamb_trust_ratio(param, direction);
  for (Slots *slots = first; slots != last; ++slots) {
    update(test::plain(), *find_algorithm("lamb"), test::HostPiece(*slots).piece, scalars);
  }
}

class DeviceLamb : public test::DeviceKernels {
 protected:
  void step_on_device(std::vector<Slots> &all, const std::vector<Told> &told) {
    const int32_t algorithm = kernels_->algorithm("lamb");
    ASSERT_GE(algorithm, 0);
    DeviceMemory memory;
    test::Call call(memory, all, told, algorithm, random);
    const size_t tensors = (all.size() + kPieces - 1) / kPieces;
    std::vector<int64_t> norms(tensors * kNormWords);
    std::vector<double> ratios(all.size());
    int64_t *norms_there = memory.place(norms);
    double *ratios_there = memory.place(ratios);
    for (size_t i = 0; i < all.size(); ++i) {
      call.pieces[i].norms = norms_there + i / kPieces * kNormWords;
      call.pieces[i].trust_ratio = ratios_there + i;
    }
    memory.upload();
    ASSERT_NO_FATAL_FAILURE(call.prepare(*kernels_));
    ASSERT_EQ(kernels_->lamb_norms(0, &call.update, memory.stream()), 0);
    ASSERT_EQ(kernels_->lamb_trust_ratios(0, call.update.pieces, std::ssize(all), memory.stream()), 0);
    ASSERT_EQ(kernels_->update(0, algorithm, &call.update, memory.stream()), 0);
    memory.download();
  }

  void compare(const std::vector<Slots> &given, const std::vector<Told> &told, int64_t name) {
    std::vector<Slots> expected = given;
    std::vector<Slots> actual = given;
    for (size_t i = 0; i < expected.size(); i += kPieces) {
      const Told &mine = told[static_cast<size_t>(expected[i].scalars)];
      if (!mine.skips) step_on_host(&expected[i], &expected[i] + std::min(kPieces, expected.size() - i), mine.scalars);
    }
    ASSERT_NO_FATAL_FAILURE(step_on_device(actual, told));
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << actual[i].text() << " case " << name;
  }

  Random random{73};
};

TEST_F(DeviceLamb, EveryStorageHasTheBitsOfTheHost) {
  int64_t pieces = 0;
  for (int64_t i = 0; i < test::cases(20000); ++i) {
    const std::vector<Told> told = {test::random_told(random), test::random_told(random)};
    std::vector<Slots> slots;
    for (int64_t k = random.below(5); k >= 0; --k) slots.push_back(test::random_slots(random, test::random_count(random)));
    for (size_t k = 0; k < slots.size(); ++k) slots[k].scalars = slots[k / kPieces * kPieces].scalars;
    ASSERT_NO_FATAL_FAILURE(compare(slots, told, i));
    pieces += std::ssize(slots);
  }
  std::printf("%lld pieces compared\n", static_cast<long long>(pieces));
}

/// Zeros, whose norms are 0, and what is not finite.
TEST_F(DeviceLamb, NormsMayBeZeroOrNotFinite) {
  const auto fill = [](test::Slot &slot, float value) {
    for (size_t i = 0; i < slot.bytes.size(); i += sizeof value) std::memcpy(slot.bytes.data() + i, &value, sizeof value);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  int64_t name = 0;
  for (const float param : {0.0F, 1.0F, infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const float grad : {0.0F, 1.0F, -3e38F, infinity}) {
      Slots slots;
      slots.count = 1500;
      for (test::Slot *slot : {&slots.param, &slots.grad, &slots.state[0], &slots.state[1]})
        *slot = test::random_slot(random, DType::f32, slots.count, false);
      fill(slots.param, param);
      fill(slots.grad, grad);
      for (test::Slot &state : slots.state) fill(state, 0);
      Told told = {test::random_scalars(random), false};
      told.scalars.hyper.step = 1;
      ASSERT_NO_FATAL_FAILURE(compare({slots}, {told}, name++));
    }
  }
}

/// Beside pieces of other algorithms.
TEST_F(DeviceLamb, PiecesWithoutNormsHaveNoRatio) {
  std::vector<cuda::UpdateSegment> pieces(2);
  std::vector<int64_t> norms(kNormWords);
  std::vector<double> ratios = {-1};
  DeviceMemory memory;
  pieces[1].norms = memory.place(norms);
  pieces[1].trust_ratio = memory.place(ratios);
  const cuda::UpdateSegment *there = memory.place(pieces);
  memory.upload();
  ASSERT_EQ(kernels_->lamb_trust_ratios(0, there, 2, memory.stream()), 0);
  memory.download();
  EXPECT_EQ(ratios[0], 1);
  EXPECT_EQ(kernels_->lamb_trust_ratios(0, nullptr, 0, nullptr), 0);
}

}  // namespace
}  // namespace zero::kernels::device_lamb_test
