/// @file LAMB, one element, and its constants: lamb.h states the formula.
#pragma once

#include "kernels/lamb.h"
#include "kernels/reference/adam-inl.h"

namespace zero::kernels::reference {

/// First pass.
struct LambMoments {
  using Constants = AdamConstants;
  static constexpr int kStates = 2;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static void update(float &, float gradient, float *state, const Constants &constants) {
    const Adam::Moments next = Adam::next_moments(gradient, state, constants);
    state[0] = canonical(next.moment);
    state[1] = canonical(next.square);
  }
};

/// Last pass.
struct LambParam {
  using Constants = LambConstants;
  static constexpr int kStates = 2;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    return {
        .correction1 = static_cast<float>(1 - power(hyper.beta1, hyper.step)),
        .root_correction = static_cast<float>(std::sqrt(1 - power(hyper.beta2, Adam::second_updates(hyper)))),
        .epsilon = static_cast<float>(hyper.epsilon),
        .weight_decay = static_cast<float>(hyper.weight_decay),
        .negative_step = negative_step(hyper.lr, hyper.trust_ratio),
    };
  }

  ZERO_ELEMENT static float negative_step(double lr, double trust_ratio) { return -saturated(lr * trust_ratio); }

  ZERO_ELEMENT static float direction(float param, const float *state, const Constants &constants) {
    const float divisor = std::sqrt(state[1]) / constants.root_correction + constants.epsilon;
    return std::fma(constants.weight_decay, param, state[0] / constants.correction1 / divisor);
  }

  ZERO_ELEMENT static void update(float &param, float, const float *state, const Constants &constants) {
    param = canonical(std::fma(constants.negative_step, direction(param, state, constants), param));
  }
};

/// The constants of all passes.
struct Lamb {
  static constexpr const char *kName = "lamb";
  using Kernel = LambParam;
  struct Constants {
    AdamConstants moments;
    LambConstants param;
    double lr;
  };

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    return {AdamW::constants(hyper), LambParam::constants(hyper), hyper.lr};
  }
};

/// Computed from the sums of squares of a tensor's parameter and direction.
ZERO_ELEMENT double trust_ratio(double param, double direction) {
  const double param_norm = std::sqrt(param);
  const double direction_norm = std::sqrt(direction);
  return param_norm == 0 || direction_norm == 0 ? 1 : param_norm / direction_norm;
}

}  // namespace zero::kernels::reference
