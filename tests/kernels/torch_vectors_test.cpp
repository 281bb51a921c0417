/// @file Optimizers against PyTorch's CPU optimizers, bit for bit. torch_vectors.py makes the vectors.
#include "torch_vectors.h"

#include "kernels/kernels.h"
#include "random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <iterator>
#include <span>
#include <vector>

namespace zero::kernels {
namespace {

uint64_t fnv1a(std::span<const float> values) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((bits >> shift) & 0xff)) * 0x100000001B3;
  }
  return hash;
}

/// Returns the number of hashes compared.
int expect_same_as_torch(const torch::Vector &vector, const Table &table) {
  SCOPED_TRACE(testing::Message() << vector.algorithm << " seed " << vector.seed << " target " << table.target);
  const Algorithm &algorithm = *find_algorithm(vector.algorithm);
  test::Random random(vector.seed);
  const auto initial = static_cast<float>(algorithm.initial_state != nullptr ? vector.hyper.*algorithm.initial_state : 0);
  std::vector<float> slots[3] = {random.values(torch::kCount, 3), std::vector<float>(torch::kCount, initial),
                                 std::vector<float>(torch::kCount)};
  int compared = 0;
  const int64_t *checkpoint = torch::kSteps;
  HyperParameters hyper = vector.hyper;
  for (hyper.step = 1; hyper.step <= *std::rbegin(torch::kSteps); ++hyper.step) {
    const std::vector<float> grad = random.values(torch::kCount, 12);
    (table.*algorithm.update)({slots[0].data(), grad.data(), {slots[1].data(), slots[2].data()}, torch::kCount},
                              algorithm.constants(hyper));
    if (hyper.step != *checkpoint) continue;
    const auto &hashes = vector.hash[checkpoint++ - torch::kSteps];
    for (int slot = 0; slot < 3 && hashes[slot] != 0; ++slot, ++compared) {
      EXPECT_EQ(fnv1a(slots[slot]), hashes[slot]) << "step " << hyper.step << " slot " << slot;
    }
  }
  for (size_t i = 0; i < torch::kShown; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(slots[0][i]), vector.param[i]) << "element " << i;
  return compared;
}

TEST(Torch, EveryTargetHasTheBitsOfTorch) {
  int compared = 0;
  for (const Table *table : supported()) {
    for (const torch::Vector &vector : torch::kVectors) compared += expect_same_as_torch(vector, *table);
  }
  std::printf("%d hashes of %lld elements compared over %zu targets and %zu sets of hyper-parameters\n", compared,
              static_cast<long long>(torch::kCount), supported().size(), std::size(torch::kVectors));
}

}  // namespace
}  // namespace zero::kernels
