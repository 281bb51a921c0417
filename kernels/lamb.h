/// @file LAMB: the formula, its constants, and its three passes: moments, norms over whole tensors,
/// parameters. All targets share this.
///
/// @verbatim
///   t = step, constants in double, rounded to fp32 once
///   m, v as Adam's (adam.h), without decay in the gradient
///   r = (m / (1 - beta1^t)) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///   r = fma(weight_decay, p, r)
///   p = fma(-lr * trust_ratio, r, p)
///   trust_ratio = |p| / |r| over the whole tensor, 1 when either is 0
/// @endverbatim
///
/// lr * trust_ratio is limited to the largest fp32, which it would exceed after many steps of zero
/// gradients. r is computed from m and v as stored, so that all passes, and all ranks that hold
/// parts of a tensor, use the same r. Only operations written as fma are fused. NaN results are
/// stored as the one NaN 0x7fc00000. Defaults: epsilon 1e-6, weight_decay 0.01. The passes move 20,
/// 12 and 16 bytes per element. You et al., "Large Batch Optimization for Deep Learning: Training
/// BERT in 76 minutes", 2020, algorithm 2, phi the identity.
#pragma once

#include "kernels/adam.h"
#include "kernels/update.h"

namespace zero::kernels {

struct LambConstants {
  float correction1;
  float root_correction;
  float epsilon;
  float weight_decay;
  float negative_step;  ///< -lr * trust_ratio
};

/// First pass: the two moments of `piece`.
void lamb_moments(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);

/// Second pass: adds the squares of the parameter (in fp32, as it is updated) and of r. `piece`
/// begins on a line of its tensor, and no other tensor shares that line.
void lamb_add_norms(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars, ExactSum &param, ExactSum &direction);

/// Words of one tensor's exported sums of squares: the parameter's, then those of r.
inline constexpr int64_t kNormWords = 2 * ExactSum::kExported;

/// Returns hyper.trust_ratio for the third pass, update(), from the sums of squares over the whole
/// tensor.
double lamb_trust_ratio(const ExactSum &param, const ExactSum &direction);

namespace reference {
/// The plain loops, also for the last few elements of the SIMD targets.
void lamb_moment_elements(const Slots &slots, const AdamConstants &constants);
void lamb_direction_elements(float *out, const Slots &slots, const LambConstants &constants);
void lamb_elements(const Slots &slots, const LambConstants &constants);
}  // namespace reference

}  // namespace zero::kernels
