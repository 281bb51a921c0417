/// @file Lion: the formula in the order in which its authors' PyTorch code computes it, and its
/// constants. All targets share this.
///
/// @verbatim
///   constants in double, rounded to fp32 once
///   p = p * (1 - lr * weight_decay)
///   u = m * beta1 + g * (1 - beta1)
///   p = fma(-lr, sign(u), p)                          sign(0) = 0, sign(NaN) = NaN
///   m = fma(1 - beta2, g, m * beta2)
/// @endverbatim
///
/// Only operations written as fma are fused. NaN results are stored as the one NaN 0x7fc00000.
/// Defaults: lr 1e-4, betas 0.9 and 0.99, no decay. 20 bytes per element must move.
///
/// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

struct LionConstants {
  float decay_factor;  ///< 1 - lr * weight_decay; exactly 1 without decay
  float beta1;
  float gradient_weight;  ///< 1 - beta1
  float negative_lr;
  float beta2;
  float moment_weight;  ///< 1 - beta2
};

namespace reference {
/// The plain loop, also for the last few elements of the SIMD targets.
void lion_elements(const Slots &slots, const LionConstants &constants);
}  // namespace reference

}  // namespace zero::kernels
