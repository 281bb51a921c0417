/// @file The optimizer algorithms that the library has: one row each. Knows their needs, not their arithmetic.
#include "kernels/kernels.h"

#include <zero/config.h>
#include <zero/optimizer.h>

#include <array>

namespace zero::kernels {
namespace {

constexpr std::array<int32_t, 5> kSgdKeys = {ZERO_KEY_LR, ZERO_KEY_MOMENTUM, ZERO_KEY_DAMPENING, ZERO_KEY_NESTEROV, ZERO_KEY_WEIGHT_DECAY};
constexpr std::array<int32_t, 5> kAdamKeys = {ZERO_KEY_LR, ZERO_KEY_BETA1, ZERO_KEY_BETA2, ZERO_KEY_EPSILON, ZERO_KEY_WEIGHT_DECAY};

constexpr std::array<Algorithm, 3> kAlgorithms = {{
    {"sgd", &Table::sgd, 1, {ZERO_SLOT_FIRST_MOMENT}, kSgdKeys, 0.0},
    {"adam", &Table::adam, 2, {ZERO_SLOT_FIRST_MOMENT, ZERO_SLOT_SECOND_MOMENT}, kAdamKeys, 0.0},
    {"adamw", &Table::adamw, 2, {ZERO_SLOT_FIRST_MOMENT, ZERO_SLOT_SECOND_MOMENT}, kAdamKeys, 0.01},
}};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm *find_algorithm(std::string_view name) {
  for (const Algorithm &algorithm : kAlgorithms) {
    if (name == algorithm.name) return &algorithm;
  }
  return nullptr;
}

}  // namespace zero::kernels
