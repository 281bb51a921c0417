/// @file Adam and AdamW, one element, and their constants: adam.h states the formula.
#pragma once

#include "kernels/adam.h"
#include "kernels/reference/float_bits.h"
#include "kernels/reference/power-inl.h"

#include <algorithm>

namespace zero::kernels::reference {

struct Adam {
  static constexpr const char *kName = "adam";
  using Constants = AdamConstants;
  using Kernel = Adam;
  static constexpr int kStates = 2;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  /// The updates of the second moment, of which there is one at least.
  ZERO_ELEMENT static int64_t second_updates(const HyperParameters &hyper) {
    return std::max<int64_t>(hyper.step - hyper.second_missed - hyper.second_stays, 1);
  }

  ZERO_ELEMENT static Constants without_decay(const HyperParameters &hyper) {
    const double correction1 = 1 - power(hyper.beta1, hyper.step);
    const double correction2 = 1 - power(hyper.beta2, second_updates(hyper));
    const double beta2 = hyper.second_stays != 0 ? 1 : hyper.beta2;
    const auto weight = static_cast<float>(1 - hyper.beta1);
    Constants constants = {};
    constants.decay_factor = 1;
    constants.from_moment = weight < 0.5F;
    constants.moment_weight = constants.from_moment ? weight : weight - 1.0F;
    constants.beta2 = static_cast<float>(beta2);
    constants.square_weight = static_cast<float>(1 - beta2);
    constants.negative_step = static_cast<float>(-(hyper.lr / correction1));
    constants.root_correction = static_cast<float>(std::sqrt(correction2));
    constants.epsilon = static_cast<float>(hyper.epsilon);
    return constants;
  }

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    Constants constants = without_decay(hyper);
    constants.adds_decay = hyper.weight_decay != 0;
    constants.weight_decay = static_cast<float>(hyper.weight_decay);
    return constants;
  }

  struct Moments {
    float moment, square;
  };

  ZERO_ELEMENT static Moments next_moments(float gradient, const float *state, const Constants &constants) {
    return {std::fma(constants.moment_weight, gradient - state[0], constants.from_moment ? state[0] : gradient),
            std::fma(constants.square_weight * gradient, gradient, state[1] * constants.beta2)};
  }

  ZERO_ELEMENT static void update(float &param, float gradient, float *state, const Constants &constants) {
    float value = param * constants.decay_factor;
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, value, gradient);
    const Moments next = next_moments(gradient, state, constants);
    const float divisor = std::sqrt(next.square) / constants.root_correction + constants.epsilon;
    value += constants.negative_step * next.moment / divisor;
    param = canonical(value);
    state[0] = canonical(next.moment);
    state[1] = canonical(next.square);
  }
};

struct AdamW : Adam {
  static constexpr const char *kName = "adamw";

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    Constants constants = without_decay(hyper);
    constants.decay_factor = static_cast<float>(1 - hyper.lr * hyper.weight_decay);
    return constants;
  }
};

}  // namespace zero::kernels::reference
