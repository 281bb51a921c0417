/// @file LAMB, plain: lamb.h states the formula.
#include "kernels/lamb.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {
namespace {

float direction(const Slots &slots, int64_t i, const LambConstants &constants) {
  const float divisor = std::sqrt(slots.state[1][i]) / constants.root_correction + constants.epsilon;
  return std::fma(constants.weight_decay, slots.param[i], slots.state[0][i] / constants.correction1 / divisor);
}

}  // namespace

void lamb_moment_elements(const Slots &slots, const AdamConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    const float gradient = slots.grad[i];
    const float moment = slots.state[0][i];
    const float square = std::fma(constants.square_weight * gradient, gradient, slots.state[1][i] * constants.beta2);
    slots.state[0][i] = canonical(std::fma(constants.moment_weight, gradient - moment, constants.from_moment ? moment : gradient));
    slots.state[1][i] = canonical(square);
  }
}

void lamb_direction_elements(float *out, const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) out[i] = canonical(direction(slots, i, constants));
}

void lamb_elements(const Slots &slots, const LambConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    slots.param[i] = canonical(std::fma(constants.negative_step, direction(slots, i, constants), slots.param[i]));
  }
}

void lamb_moments(const Slots &slots, const HyperParameters &hyper) { lamb_moment_elements(slots, adamw_constants(hyper)); }

void lamb_direction(float *out, const Slots &slots, const HyperParameters &hyper) {
  lamb_direction_elements(out, slots, lamb_constants(hyper));
}

void lamb(const Slots &slots, const HyperParameters &hyper) { lamb_elements(slots, lamb_constants(hyper)); }

}  // namespace zero::kernels::reference
