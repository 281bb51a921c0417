/// @file Lion, plain: lion.h states the formula.
#include "kernels/lion.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {
namespace {

float sign(float value) { return value > 0 ? 1.0F : value < 0 ? -1.0F : std::isnan(value) ? value : 0.0F; }

}  // namespace

void lion_elements(const Slots &slots, const LionConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    const float gradient = slots.grad[i];
    const float moment = slots.state[0][i];
    const float direction = moment * constants.beta1 + gradient * constants.gradient_weight;
    slots.param[i] = canonical(std::fma(constants.negative_lr, sign(direction), slots.param[i] * constants.decay_factor));
    slots.state[0][i] = canonical(std::fma(constants.moment_weight, gradient, moment * constants.beta2));
  }
}

void lion(const Slots &slots, const HyperParameters &hyper) { lion_elements(slots, lion_constants(hyper)); }

}  // namespace zero::kernels::reference
