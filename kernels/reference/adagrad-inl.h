/// @file Adagrad, one element, and its constants: adagrad.h states the formula.
#pragma once

#include "kernels/adagrad.h"
#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

struct Adagrad {
  static constexpr const char *kName = "adagrad";
  using Constants = AdagradConstants;
  using Kernel = Adagrad;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    const double rate = hyper.lr / (1 + (static_cast<double>(hyper.step) - 1) * hyper.lr_decay);
    return {
        .weight_decay = static_cast<float>(hyper.weight_decay),
        .adds_decay = hyper.weight_decay != 0,
        .negative_step = static_cast<float>(-rate),
        .epsilon = static_cast<float>(hyper.epsilon),
    };
  }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, param, gradient);
    const float sum = std::fma(gradient, gradient, state[0]);
    param = canonical(param + constants.negative_step * gradient / (std::sqrt(sum) + constants.epsilon));
    state[0] = canonical(sum);
  }
};

}  // namespace zero::kernels::reference
