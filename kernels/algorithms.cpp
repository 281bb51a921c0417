/// @file The optimizer algorithms that the library has: one row each. Knows their needs, not their
/// arithmetic.
#include "kernels/constants.h"
#include "kernels/reference/lamb-inl.h"
#include "kernels/reference/updates-inl.h"

#include <zero/config.h>
#include <zero/optimizer.h>

namespace zero::kernels {
namespace {

constexpr int32_t kSgdKeys[] = {ZERO_KEY_LR, ZERO_KEY_MOMENTUM, ZERO_KEY_DAMPENING, ZERO_KEY_NESTEROV, ZERO_KEY_WEIGHT_DECAY};
constexpr int32_t kAdamKeys[] = {ZERO_KEY_LR, ZERO_KEY_BETA1, ZERO_KEY_BETA2, ZERO_KEY_EPSILON, ZERO_KEY_WEIGHT_DECAY};
constexpr int32_t kAdagradKeys[] = {ZERO_KEY_LR, ZERO_KEY_LR_DECAY, ZERO_KEY_EPSILON, ZERO_KEY_WEIGHT_DECAY, ZERO_KEY_INITIAL_ACCUMULATOR};
constexpr int32_t kLionKeys[] = {ZERO_KEY_LR, ZERO_KEY_BETA1, ZERO_KEY_BETA2, ZERO_KEY_WEIGHT_DECAY};

constexpr int32_t kMuonKeys[] = {ZERO_KEY_LR,      ZERO_KEY_MOMENTUM,     ZERO_KEY_NESTEROV,
                                 ZERO_KEY_EPSILON, ZERO_KEY_WEIGHT_DECAY, ZERO_KEY_NEWTON_SCHULZ_STEPS};

constexpr HyperDefault kAdamWDefaults[] = {{ZERO_KEY_WEIGHT_DECAY, 0.01}};
constexpr HyperDefault kAdagradDefaults[] = {{ZERO_KEY_LR, 1e-2}, {ZERO_KEY_EPSILON, 1e-10}};
constexpr HyperDefault kLionDefaults[] = {{ZERO_KEY_LR, 1e-4}, {ZERO_KEY_BETA2, 0.99}};

constexpr HyperDefault kLambDefaults[] = {{ZERO_KEY_EPSILON, 1e-6}, {ZERO_KEY_WEIGHT_DECAY, 0.01}};
constexpr HyperDefault kMuonDefaults[] = {
    {ZERO_KEY_MOMENTUM, 0.95}, {ZERO_KEY_NESTEROV, 1}, {ZERO_KEY_EPSILON, 1e-7}, {ZERO_KEY_WEIGHT_DECAY, 0.1}};

constexpr auto kInitialAccumulator = &HyperParameters::initial_accumulator;
constexpr int32_t kFirst = ZERO_SLOT_FIRST_MOMENT;
constexpr int32_t kSecond = ZERO_SLOT_SECOND_MOMENT;

constexpr Algorithm kAlgorithms[] = {
    {"sgd", &Table::sgd, constants_of<reference::Sgd>, 1, {kFirst}, kSgdKeys, {}},
    {"adam", &Table::adam, constants_of<reference::Adam>, 2, {kFirst, kSecond}, kAdamKeys, {}},
    {"adamw", &Table::adam, constants_of<reference::AdamW>, 2, {kFirst, kSecond}, kAdamKeys, kAdamWDefaults},
    {"adagrad", &Table::adagrad, constants_of<reference::Adagrad>, 1, {kSecond}, kAdagradKeys, kAdagradDefaults, kInitialAccumulator},
    {"lion", &Table::lion, constants_of<reference::Lion>, 1, {kFirst}, kLionKeys, kLionDefaults},
    {"lamb", &Table::lamb, constants_of<reference::LambParam>, 2, {kFirst, kSecond}, kAdamKeys, kLambDefaults, nullptr, true},
    {"muon", nullptr, nullptr, 1, {kFirst}, kMuonKeys, kMuonDefaults, nullptr, false, true},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm *find_algorithm(std::string_view name) {
  for (const Algorithm &algorithm : kAlgorithms) {
    if (name == algorithm.name) return &algorithm;
  }
  return nullptr;
}

}  // namespace zero::kernels
