/// @file Optimizers against PyTorch's CPU optimizers, bit for bit: torch_vectors.py makes the
/// vectors, with a PyTorch whose square root is correctly rounded. AdamW also against its formula,
/// each operation of which is rounded from a double.
#include "torch_vectors.h"

#include "kernels/kernels.h"
#include "random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <span>
#include <vector>

namespace zero::kernels::torch_vectors_test {
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

/// A result in double, rounded to fp32: correctly for sums, products, quotients and roots of fp32,
/// as a double has 53 >= 2 * 24 + 2 bits.
float rounded(double exact) { return static_cast<float>(exact); }

/// adam.h's formula of AdamW, from constants that are rounded as it says.
struct RoundedAdamW {
  float decay, moment_weight, beta2, square_weight, negative_step, correction, epsilon;

  explicit RoundedAdamW(const HyperParameters &hyper)
      : decay(rounded(1 - hyper.lr * hyper.weight_decay)),
        moment_weight(rounded(1 - hyper.beta1)),
        beta2(rounded(hyper.beta2)),
        square_weight(rounded(1 - hyper.beta2)),
        negative_step(rounded(-(hyper.lr / (1 - std::pow(hyper.beta1, hyper.step))))),
        correction(rounded(std::sqrt(1 - std::pow(hyper.beta2, hyper.step)))),
        epsilon(rounded(hyper.epsilon)) {}

  void update(float g, float *p, float *m, float *v) const {
    *m = std::fma(moment_weight, rounded(double{g} - *m), *m);
    *v = std::fma(rounded(double{square_weight} * g), g, rounded(double{*v} * beta2));
    const float quotient = rounded(double{rounded(std::sqrt(double{*v}))} / correction);
    const float change = rounded(double{rounded(double{negative_step} * *m)} / rounded(double{quotient} + epsilon));
    *p = rounded(double{rounded(double{*p} * decay)} + change);
  }
};

TEST(AdamW, IsItsFormulaWithEveryOperationCorrectlyRounded) {
  constexpr int64_t kElements = 50021;
  for (const Table *table : supported()) {
    const Algorithm &algorithm = *find_algorithm("adamw");
    test::Random random(7);
    std::vector<float> slots[3] = {random.values(kElements, 3), std::vector<float>(kElements), std::vector<float>(kElements)};
    std::vector<float> expected[3] = {slots[0], slots[1], slots[2]};
    HyperParameters hyper = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};
    for (hyper.step = 1; hyper.step <= 10; ++hyper.step) {
      const std::vector<float> grad = random.values(kElements, 12);
      (table->*algorithm.update)({slots[0].data(), grad.data(), {slots[1].data(), slots[2].data()}, kElements}, algorithm.constants(hyper));
      const RoundedAdamW formula(hyper);
      for (size_t i = 0; i < kElements; ++i) formula.update(grad[i], &expected[0][i], &expected[1][i], &expected[2][i]);
    }
    for (int slot = 0; slot < 3; ++slot) EXPECT_EQ(fnv1a(slots[slot]), fnv1a(expected[slot])) << table->target << " slot " << slot;
  }
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
}  // namespace zero::kernels::torch_vectors_test
