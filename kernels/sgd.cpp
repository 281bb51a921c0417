/// @file Constants of stochastic gradient descent.
#include "kernels/sgd.h"

namespace zero::kernels {
namespace {

MomentumForm momentum_form(const HyperParameters &hyper) {
  if (hyper.momentum == 0) return MomentumForm::none;
  if (hyper.nesterov != 0) return hyper.step == 1 ? MomentumForm::first_nesterov : MomentumForm::nesterov;
  return hyper.step == 1 ? MomentumForm::first : MomentumForm::classic;
}

}  // namespace

SgdConstants sgd_constants(const HyperParameters &hyper) {
  return {
      .negative_lr = static_cast<float>(-hyper.lr),
      .weight_decay = static_cast<float>(hyper.weight_decay),
      .momentum = static_cast<float>(hyper.momentum),
      .gradient_weight = static_cast<float>(1 - hyper.dampening),
      .adds_decay = hyper.weight_decay != 0,
      .form = momentum_form(hyper),
  };
}

}  // namespace zero::kernels
