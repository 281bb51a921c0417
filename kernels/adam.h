/// @file Adam and AdamW: the formula in the order in which torch's CPU optimizers compute it, and its constants. All targets share this.
///
///   t = step, constants in double (powers rounded to nearest: reference/power-inl.h), rounded to fp32 once
///   adamw:  p = p * (1 - lr * weight_decay)
///   adam:   g = fma(weight_decay, p, g)                       when weight_decay is not 0
///   m = fma(1 - beta1, g - m, m)                              when 1 - beta1 < 0.5 in fp32, otherwise
///   m = fma((1 - beta1) - 1, g - m, g)                        (the end of a linear interpolation that is nearer)
///   v = fma((1 - beta2) * g, g, v * beta2)
///   p = p + (-lr / (1 - beta1^t) * m) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// Only what is written fma is fused, and every operation is correctly rounded. torch has the same
/// bits where its square root is: tests/kernels/torch_vectors.py says in which builds. NaN results are
/// stored as the one NaN 0x7fc00000. 28 bytes per element must move.
/// Kingma and Ba, "Adam", 2015, algorithm 1; Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

struct AdamConstants {
  float decay_factor;  ///< adamw: 1 - lr * weight_decay; exactly 1 without decay
  float weight_decay;  ///< adam
  bool adds_decay;     ///< adam: the gradient gets weight_decay * p
  bool from_moment;    ///< the interpolation starts at m; otherwise at g
  float moment_weight;
  float beta2;
  float square_weight;
  float negative_step;
  float root_correction;
  float epsilon;
};

namespace reference {
/// The plain loop, also for the last few elements of the SIMD targets.
void adam_elements(const Slots &slots, const AdamConstants &constants);
}  // namespace reference

}  // namespace zero::kernels
