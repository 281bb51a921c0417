/// @file Constants of Adagrad.
#include "kernels/adagrad.h"

namespace zero::kernels {

AdagradConstants adagrad_constants(const HyperParameters &hyper) {
  const double rate = hyper.lr / (1 + (static_cast<double>(hyper.step) - 1) * hyper.lr_decay);
  return {
      .weight_decay = static_cast<float>(hyper.weight_decay),
      .adds_decay = hyper.weight_decay != 0,
      .negative_step = static_cast<float>(-rate),
      .epsilon = static_cast<float>(hyper.epsilon),
  };
}

}  // namespace zero::kernels
