/// @file Lion, one element, and its constants: lion.h states the formula.
#pragma once

#include "kernels/lion.h"
#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

struct Lion {
  static constexpr const char *kName = "lion";
  using Constants = LionConstants;
  using Kernel = Lion;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    return {
        .decay_factor = static_cast<float>(1 - hyper.lr * hyper.weight_decay),
        .beta1 = static_cast<float>(hyper.beta1),
        .gradient_weight = static_cast<float>(1 - hyper.beta1),
        .negative_lr = static_cast<float>(-hyper.lr),
        .beta2 = static_cast<float>(hyper.beta2),
        .moment_weight = static_cast<float>(1 - hyper.beta2),
    };
  }

  ZERO_ELEMENT static float sign(float value) { return value > 0 ? 1.0F : value < 0 ? -1.0F : std::isnan(value) ? value : 0.0F; }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    const float direction = state[0] * constants.beta1 + gradient * constants.gradient_weight;
    param = canonical(std::fma(constants.negative_lr, sign(direction), param * constants.decay_factor));
    state[0] = canonical(std::fma(constants.moment_weight, gradient, state[0] * constants.beta2));
  }
};

}  // namespace zero::kernels::reference
