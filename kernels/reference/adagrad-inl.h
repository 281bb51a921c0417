/// @file Adagrad, one element: adagrad.h states the formula.
#pragma once

#include "kernels/adagrad.h"
#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

struct Adagrad {
  using Constants = AdagradConstants;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, param, gradient);
    const float sum = std::fma(gradient, gradient, state[0]);
    param = canonical(param + constants.negative_step * gradient / (std::sqrt(sum) + constants.epsilon));
    state[0] = canonical(sum);
  }
};

}  // namespace zero::kernels::reference
