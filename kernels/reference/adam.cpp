/// @file Adam and AdamW, plain: adam.h states the formula.
#include "kernels/adam.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adam_elements(const Slots &slots, const AdamConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    float param = slots.param[i] * constants.decay_factor;
    float gradient = slots.grad[i];
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, param, gradient);
    float moment = slots.state[0][i];
    moment = std::fma(constants.moment_weight, gradient - moment, constants.from_moment ? moment : gradient);
    const float square = std::fma(constants.square_weight * gradient, gradient, slots.state[1][i] * constants.beta2);
    const float divisor = std::sqrt(square) / constants.root_correction + constants.epsilon;
    param += constants.negative_step * moment / divisor;
    slots.param[i] = canonical(param);
    slots.state[0][i] = canonical(moment);
    slots.state[1][i] = canonical(square);
  }
}

void adam(const Slots &slots, const HyperParameters &hyper) { adam_elements(slots, adam_constants(hyper)); }
void adamw(const Slots &slots, const HyperParameters &hyper) { adam_elements(slots, adamw_constants(hyper)); }

}  // namespace zero::kernels::reference
