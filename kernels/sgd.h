/// @file Stochastic gradient descent: the formula in the order in which torch's CPU optimizer
/// computes it, and its constants.
///
/// @verbatim
///   constants in double, rounded to fp32 once
///   g = fma(weight_decay, p, g)                               when weight_decay is not 0
///   b = g in step 1, b = fma(1 - dampening, g, b * momentum)  when momentum is not 0; then
///   g = fma(momentum, b, g) with Nesterov, g = b without
///   p = fma(-lr, g, p)
/// @endverbatim
///
/// Only operations written as fma are fused. NaN results are stored as the one NaN 0x7fc00000.
/// Without momentum the state is not touched. 12 bytes per element must move without momentum, 20
/// with it.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

/// How the momentum buffer is updated and used.
enum class MomentumForm { none, first, classic, first_nesterov, nesterov };

struct SgdConstants {
  float negative_lr;
  float weight_decay;
  float momentum;
  float gradient_weight;  ///< 1 - dampening
  bool adds_decay;
  MomentumForm form;
};

namespace reference {
/// The plain loop, also for the last few elements of the SIMD targets.
void sgd_elements(const Slots &slots, const SgdConstants &constants);
}  // namespace reference

}  // namespace zero::kernels
