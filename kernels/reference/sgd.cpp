/// @file Stochastic gradient descent, plain: sgd.h states the formula.
#include "kernels/sgd.h"

#include "kernels/reference/float_bits.h"
#include "kernels/target.h"

namespace zero::kernels::reference {
namespace {

float next_momentum(float buffer, float gradient, const SgdConstants &constants) {
  const bool first = constants.form == MomentumForm::first || constants.form == MomentumForm::first_nesterov;
  return first ? gradient : std::fma(constants.gradient_weight, gradient, buffer * constants.momentum);
}

}  // namespace

void sgd_elements(const Slots &slots, const SgdConstants &constants) {
  const bool nesterov = constants.form == MomentumForm::nesterov || constants.form == MomentumForm::first_nesterov;
  for (int64_t i = 0; i < slots.count; ++i) {
    float gradient = slots.grad[i];
    if (constants.adds_decay) gradient = std::fma(constants.weight_decay, slots.param[i], gradient);
    if (constants.form != MomentumForm::none) {
      const float buffer = next_momentum(slots.state[0][i], gradient, constants);
      slots.state[0][i] = canonical(buffer);
      gradient = nesterov ? std::fma(constants.momentum, buffer, gradient) : buffer;
    }
    slots.param[i] = canonical(std::fma(constants.negative_lr, gradient, slots.param[i]));
  }
}

void sgd(const Slots &slots, const HyperParameters &hyper) { sgd_elements(slots, sgd_constants(hyper)); }

}  // namespace zero::kernels::reference
