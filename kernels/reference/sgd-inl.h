/// @file Stochastic gradient descent, one element, and its constants: sgd.h states the formula.
#pragma once

#include "kernels/reference/float_bits.h"
#include "kernels/sgd.h"

namespace zero::kernels::reference {

struct Sgd {
  static constexpr const char *kName = "sgd";
  using Constants = SgdConstants;
  using Kernel = Sgd;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &constants) { return constants.form != MomentumForm::none; }

  ZERO_ELEMENT static MomentumForm form_of(const HyperParameters &hyper) {
    if (hyper.momentum == 0) return MomentumForm::none;
    if (hyper.nesterov != 0) return hyper.step == 1 ? MomentumForm::first_nesterov : MomentumForm::nesterov;
    return hyper.step == 1 ? MomentumForm::first : MomentumForm::classic;
  }

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    return {
        .negative_lr = static_cast<float>(-hyper.lr),
        .weight_decay = static_cast<float>(hyper.weight_decay),
        .momentum = static_cast<float>(hyper.momentum),
        .gradient_weight = static_cast<float>(1 - hyper.dampening),
        .adds_decay = hyper.weight_decay != 0,
        .form = form_of(hyper),
    };
  }

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
