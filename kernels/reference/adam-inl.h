/// @file Adam and AdamW, one element: adam.h states the formula.
#pragma once

#include "kernels/adam.h"
#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

struct Adam {
  using Constants = AdamConstants;
  static constexpr int kStates = 2;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    float value = param * constants.decay_factor;
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, value, gradient);
    const float moment = std::fma(constants.moment_weight, gradient - state[0], constants.from_moment ? state[0] : gradient);
    const float square = std::fma(constants.square_weight * gradient, gradient, state[1] * constants.beta2);
    const float divisor = std::sqrt(square) / constants.root_correction + constants.epsilon;
    value += constants.negative_step * moment / divisor;
    param = canonical(value);
    state[0] = canonical(moment);
    state[1] = canonical(square);
  }
};

}  // namespace zero::kernels::reference
