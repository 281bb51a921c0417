/// @file Adam and AdamW: the formula in the order in which torch's CPU optimizers compute it, and
/// its constants. All targets share this.
///
/// @verbatim
///   t = step, constants in double, rounded to fp32 once
///             (powers rounded to nearest: reference/power-inl.h)
///   adamw:  p = p * (1 - lr * weight_decay)
///   adam:   g = fma(weight_decay, p, g)           when weight_decay is not 0
///   m = fma(1 - beta1, g - m, m)                  when 1 - beta1 < 0.5 in fp32, otherwise
///   m = fma((1 - beta1) - 1, g - m, g)            (the nearer end of a linear interpolation)
///   v = fma((1 - beta2) * g, g, v * beta2)
///   p = p + (-lr / (1 - beta1^t) * m) / (sqrt(v) / sqrt(1 - beta2^u) + epsilon)
///   u = t, less the steps that have left v as it was (HyperParameters::second_missed)
/// @endverbatim
///
/// In a step that leaves v as it is (HyperParameters::second_stays), 1 - beta2 counts as 0, beta2
/// as 1, and the step is not in u. A finite gradient then leaves every bit of v.
///
/// Only operations written as fma are fused, and every operation is correctly rounded. torch
/// computes the same bits if its square root is correctly rounded; tests/kernels/torch_vectors.py
/// names those builds. NaN results are stored as the one NaN 0x7fc00000. 28 bytes per element must
/// move.
///
/// Kingma and Ba, "Adam", 2015, algorithm 1; Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019, algorithm 2.
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
