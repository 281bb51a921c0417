/// @file Muon, one element, its factors and constants: muon.h states the formula.
#pragma once

#include "kernels/muon.h"
#include "kernels/reference/elementwise-inl.h"

#include <cmath>

namespace zero::kernels::reference {

/// The constants of all passes.
struct MuonConstants {
  float momentum;
  float gradient_weight;  ///< 1 - momentum
  float decay_factor;     ///< 1 - lr * weight_decay
  bool nesterov;
  double epsilon;
  double lr;
};

/// First pass.
struct MuonMomentum {
  using Constants = MuonConstants;
  static constexpr int kStates = 1;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return true; }

  ZERO_ELEMENT static void update(float &direction, float gradient, float *state, const Constants &constants) {
    state[0] = interpolated(state[0], gradient, constants.gradient_weight);
    direction = constants.nesterov ? interpolated(gradient, state[0], constants.momentum) : state[0];
  }
};

/// Last pass.
struct MuonParam {
  struct Constants {
    float decay_factor;
    float negative_rate;
  };
  static constexpr int kStates = 0;
  ZERO_ELEMENT static bool uses_states(const Constants &) { return false; }

  /// `adjustment` is the tensor's rate_adjustment().
  ZERO_ELEMENT static Constants constants(const MuonConstants &given, double adjustment) {
    return {given.decay_factor, static_cast<float>(-(given.lr * adjustment))};
  }

  ZERO_ELEMENT static void update(float &param, float direction, const float *, const Constants &constants) {
    param = combined(param, constants.decay_factor, direction, constants.negative_rate);
  }
};

struct Muon {
  static constexpr const char *kName = "muon";
  using Constants = MuonConstants;
  // The coefficients of the quintic iteration.
  static constexpr float kA = 3.4445F;
  static constexpr float kB = -4.7750F;
  static constexpr float kC = 2.0315F;

  ZERO_ELEMENT static Constants constants(const HyperParameters &hyper) {
    return {
        .momentum = static_cast<float>(hyper.momentum),
        .gradient_weight = static_cast<float>(1 - hyper.momentum),
        .decay_factor = static_cast<float>(1 - hyper.lr * hyper.weight_decay),
        .nesterov = hyper.nesterov != 0,
        .epsilon = hyper.epsilon,
        .lr = hyper.lr,
    };
  }

  /// The factor of directions, from the sum of their squares; zeros stay zeros.
  ZERO_ELEMENT static float normalising_factor(double squares, double epsilon) {
    const double norm = std::sqrt(squares);
    return norm == 0 ? 1.0F : saturated(1 / (norm > epsilon ? norm : epsilon));
  }

  /// The factor of the rate for a matrix of rows x columns.
  ZERO_ELEMENT static double rate_adjustment(int64_t rows, int64_t columns) {
    return rows > columns ? std::sqrt(static_cast<double>(rows) / static_cast<double>(columns)) : 1;
  }
};

}  // namespace zero::kernels::reference
