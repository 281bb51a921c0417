/// @file Constants of Lion.
#include "kernels/lion.h"

namespace zero::kernels {

LionConstants lion_constants(const HyperParameters &hyper) {
  return {
      .decay_factor = static_cast<float>(1 - hyper.lr * hyper.weight_decay),
      .beta1 = static_cast<float>(hyper.beta1),
      .gradient_weight = static_cast<float>(1 - hyper.beta1),
      .negative_lr = static_cast<float>(-hyper.lr),
      .beta2 = static_cast<float>(hyper.beta2),
      .moment_weight = static_cast<float>(1 - hyper.beta2),
  };
}

}  // namespace zero::kernels
