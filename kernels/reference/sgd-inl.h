/// @file Stochastic gradient descent, one element: sgd.h states the formula.
#pragma once

#include "kernels/reference/float_bits.h"
#include "kernels/sgd.h"

namespace zero::kernels::reference {

struct Sgd {
  using Constants = SgdConstants;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &constants) { return constants.form != MomentumForm::none; }

  ZERO_ELEMENT static float next_momentum(float buffer, float gradient, const Constants &constants) {
    const bool first = constants.form == MomentumForm::first || constants.form == MomentumForm::first_nesterov;
    return first ? gradient : std::fma(constants.gradient_weight, gradient, buffer * constants.momentum);
  }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    const bool nesterov = constants.form == MomentumForm::nesterov || constants.form == MomentumForm::first_nesterov;
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, param, gradient);
    if (uses_states(constants)) {
      const float buffer = next_momentum(state[0], gradient, constants);
      state[0] = canonical(buffer);
      gradient = nesterov ? std::fma(constants.momentum, buffer, gradient) : buffer;
    }
    param = canonical(std::fma(constants.negative_lr, gradient, param));
  }
};

}  // namespace zero::kernels::reference
