/// @file Constants of Adam and AdamW.
#include "kernels/adam.h"

#include <cmath>

namespace zero::kernels {
namespace {

AdamConstants common_constants(const HyperParameters &hyper) {
  const auto step = static_cast<double>(hyper.step);
  const double correction1 = 1 - std::pow(hyper.beta1, step);
  const double correction2 = 1 - std::pow(hyper.beta2, step);
  const auto weight = static_cast<float>(1 - hyper.beta1);
  AdamConstants constants = {};
  constants.decay_factor = 1;
  constants.from_moment = weight < 0.5F;
  constants.moment_weight = constants.from_moment ? weight : weight - 1.0F;
  constants.beta2 = static_cast<float>(hyper.beta2);
  constants.square_weight = static_cast<float>(1 - hyper.beta2);
  constants.negative_step = static_cast<float>(-(hyper.lr / correction1));
  constants.root_correction = static_cast<float>(std::pow(correction2, 0.5));  // pow, not sqrt: as Python's ** rounds it
  constants.epsilon = static_cast<float>(hyper.epsilon);
  return constants;
}

}  // namespace

AdamConstants adam_constants(const HyperParameters &hyper) {
  AdamConstants constants = common_constants(hyper);
  constants.adds_decay = hyper.weight_decay != 0;
  constants.weight_decay = static_cast<float>(hyper.weight_decay);
  return constants;
}

AdamConstants adamw_constants(const HyperParameters &hyper) {
  AdamConstants constants = common_constants(hyper);
  constants.decay_factor = static_cast<float>(1 - hyper.lr * hyper.weight_decay);
  return constants;
}

}  // namespace zero::kernels
