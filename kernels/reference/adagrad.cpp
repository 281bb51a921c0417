/// @file Adagrad, plain: adagrad.h states the formula.
#include "kernels/adagrad.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {

void adagrad_elements(const Slots &slots, const AdagradConstants &constants) {
  for (int64_t i = 0; i < slots.count; ++i) {
    const float param = slots.param[i];
    float gradient = slots.grad[i];
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, param, gradient);
    const float sum = std::fma(gradient, gradient, slots.state[0][i]);
    slots.param[i] = canonical(param + constants.negative_step * gradient / (std::sqrt(sum) + constants.epsilon));
    slots.state[0][i] = canonical(sum);
  }
}

void adagrad(const Slots &slots, const HyperParameters &hyper) { adagrad_elements(slots, adagrad_constants(hyper)); }

}  // namespace zero::kernels::reference
