/// @file Updates on a device: the bits of kernels/update.h with the plain table, for all storages,
/// sources and cuts.
#include "kernels/update.h"

#include "tests/algorithms.h"
#include "tests/kernels/device_pieces.h"

#include <cstdio>
#include <string>

namespace zero::kernels::device_update_test {
namespace {

using test::DeviceMemory;
using test::Random;
using test::Slots;
using test::Told;

void update_on_device(const cuda::Table &kernels, DeviceMemory &memory, Random &random, const char *name, std::vector<Slots> &all,
                      const std::vector<Told> &told) {
  const int32_t algorithm = kernels.algorithm(name);
  ASSERT_GE(algorithm, 0) << name;
  test::Call call(memory, all, told, algorithm, random);
  memory.upload();
  ASSERT_NO_FATAL_FAILURE(call.prepare(kernels));
  ASSERT_EQ(kernels.update(0, algorithm, &call.update, memory.stream()), 0);
  memory.download();
}

using DeviceUpdate = test::DeviceKernels;

TEST_F(DeviceUpdate, EveryAlgorithmAndStorageHasTheBitsOfTheHost) {
  const zero::test::Names names = zero::test::elementwise_names();
  Random random(70);
  DeviceMemory memory;
  int64_t updates = 0;
  for (int64_t i = 0; i < test::cases(60000); ++i) {
    const char *name = names[static_cast<size_t>(i) % names.size()];
    const std::vector<Told> told = {test::random_told(random), test::random_told(random)};
    std::vector<Slots> actual;
    for (int64_t pieces = 1 + random.below(3); pieces > 0; --pieces)
      actual.push_back(test::random_slots(random, test::random_count(random)));
    const bool has_momentum = told[0].scalars.hyper.momentum != 0 || told[1].scalars.hyper.momentum != 0;
    for (Slots &slots : actual) {
      if (name == std::string("sgd") && !has_momentum && random.below(2) == 0) slots.state[0] = {};
    }
    std::vector<Slots> expected = actual;
    for (Slots &slots : expected) {
      const Told &mine = told[static_cast<size_t>(slots.scalars)];
      if (!mine.skips) update(test::plain(), *find_algorithm(name), test::HostPiece(slots).piece, mine.scalars);
    }
    update_on_device(*kernels_, memory, random, name, actual, told);
    for (size_t p = 0; p < actual.size(); ++p) {
      ASSERT_EQ(actual[p], expected[p]) << name << " " << actual[p].text() << " case " << i;
      ++updates;
    }
  }
  std::printf("%lld pieces compared\n", static_cast<long long>(updates));
}

/// Each piece uses the number of its own update, but random numbers of the run's step. For some
/// pieces only the average moves.
TEST_F(DeviceUpdate, PiecesWhoseUpdatesAreCountedApartHaveTheBitsOfTheHost) {
  const zero::test::Names names = zero::test::elementwise_names();
  Random random(73);
  DeviceMemory memory;
  int64_t untouched = 0;
  for (int64_t i = 0; i < test::cases(20000); ++i) {
    const char *name = names[static_cast<size_t>(i) % names.size()];
    std::vector<Told> told = {test::random_told(random), test::random_told(random)};
    for (Told &each : told) each.scalars.hyper.momentum = 0.9;
    std::vector<Slots> actual;
    std::vector<int64_t> updates;
    for (int64_t pieces = 1 + random.below(4); pieces > 0; --pieces) {
      actual.push_back(test::random_slots(random, test::random_count(random)));
      actual.back().untouched = random.below(3) == 0;
      updates.push_back(random.below(4) == 0 ? static_cast<int64_t>(random.next() >> 9) : random.below(4));
    }
    std::vector<Slots> expected = actual;
    for (size_t p = 0; p < expected.size() && !told[0].skips; ++p) {
      UpdateScalars mine = told[static_cast<size_t>(expected[p].scalars)].scalars;
      mine.hyper.step = updates[p] + 1;
      mine.step = told[0].scalars.step;
      mine.grad_factor = told[0].scalars.grad_factor;
      const test::HostPiece piece(expected[p]);
      if (!expected[p].untouched) {
        update(test::plain(), *find_algorithm(name), piece.piece, mine);
      } else if (expected[p].average.is_kept()) {
        move_average(test::plain(), piece.piece, mine);
        ++untouched;
      }
    }
    test::Call call(memory, actual, told, kernels_->algorithm(name), random, &updates);
    memory.upload();
    ASSERT_NO_FATAL_FAILURE(call.prepare(*kernels_));
    ASSERT_EQ(kernels_->update(0, kernels_->algorithm(name), &call.update, memory.stream()), 0);
    ASSERT_EQ(kernels_->move_averages(0, &call.update, memory.stream()), 0);
    memory.download();
    for (size_t p = 0; p < actual.size(); ++p) ASSERT_EQ(actual[p], expected[p]) << name << " " << actual[p].text() << " case " << i;
  }
  EXPECT_GT(untouched, 0);
}

TEST_F(DeviceUpdate, EveryAlgorithmOfTheHostHasANumber) {
  for (const Algorithm &algorithm : algorithms()) EXPECT_GE(kernels_->algorithm(algorithm.name), 0) << algorithm.name;
  EXPECT_EQ(kernels_->algorithm("custom"), -1);
  EXPECT_EQ(kernels_->algorithm(""), -1);
}

TEST_F(DeviceUpdate, NoChunksAreNoWork) {
  const cuda::Update update = {};
  EXPECT_EQ(kernels_->update(0, kernels_->algorithm("adamw"), &update, nullptr), 0);
}

}  // namespace
}  // namespace zero::kernels::device_update_test
