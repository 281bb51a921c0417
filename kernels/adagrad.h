/// @file Adagrad: the formula in the order in which torch's CPU optimizer computes it, and its
/// constants. All targets share this.
///
/// @verbatim
///   constants in double, rounded to fp32 once
///   g = fma(weight_decay, p, g)                   when weight_decay is not 0
///   s = fma(g, g, s)                              s = initial_accumulator before the first step
///   p = p + (-lr / (1 + (step - 1) * lr_decay) * g) / (sqrt(s) + epsilon)
/// @endverbatim
///
/// Only operations written as fma are fused. NaN results are stored as the one NaN 0x7fc00000.
/// Defaults: lr 1e-2, epsilon 1e-10, the others 0. 20 bytes per element must move.
///
/// Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
/// Optimization", 2011, figure 1 with diagonal matrices.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

struct AdagradConstants {
  float weight_decay;
  bool adds_decay;
  float negative_step;
  float epsilon;
};

namespace reference {
/// The plain loop, also for the last few elements of the SIMD targets.
void adagrad_elements(const Slots &slots, const AdagradConstants &constants);
}  // namespace reference

}  // namespace zero::kernels
