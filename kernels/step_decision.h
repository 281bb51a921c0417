/// @file Step decision: whether a step is skipped, the factor of its gradients, and the next loss
/// scale, decided once gradients are known. The host and devices share the formula
/// (reference/step_decision-inl.h).
///
/// @verbatim
///   squares = sum of squares of the reduced gradients, as stored, with the loss scale in them
///   scale   = the loss scale with which the gradients were given
///   norm    = sqrt(squares) / scale if it is wanted, otherwise 0
///   factor  = fp32(min(1, clip_norm / (norm + 1e-6)) / scale), as torch.nn.utils.clip_grad_norm_;
///             without clipping fp32(1 / scale)
/// @endverbatim
///
/// The dynamic loss scale (Micikevicius et al., "Mixed Precision Training", 2018, section 3.2)
/// falls at an overflow, but the first hysteresis - 1 overflows since it last grew are ignored. It
/// grows after a window of steps without overflow.
#pragma once

#include <cstdint>

namespace zero::kernels {

struct LossScaleRules {
  int64_t dynamic = 0;
  int64_t window = 0;
  int64_t hysteresis = 0;
  double backoff = 0;
  double growth = 0;
  double least = 0;
  double most = 0;
};

struct DecisionRules {
  int64_t skips_nonfinite = 0;
  int64_t has_norm = 0;
  double clip_norm = 0;  ///< 0 = off
  LossScaleRules loss_scale;
  double grad_scale = 0;  ///< that of the gradients; 0: the one in the state
};

struct LossScaleState {
  double value = 1;
  int64_t growth_count = 0;    ///< steps since the last overflow or growth
  int64_t overflow_count = 0;  ///< overflows that hysteresis has absorbed since the scale last grew
};

/// State that one step of an optimizer passes to the next, and the newest decision. Fields of 8
/// bytes only.
struct StepState {
  int64_t applied_count = 0;
  int64_t skipped_count = 0;
  LossScaleState loss_scale;
  int64_t skips = 0;
  double grad_norm = 0;
  double grad_factor = 1;  ///< an fp32 value
};

/// Decides a step. `nonfinite`: a gradient was not finite on some rank. A norm that is not finite
/// counts as such a gradient.
void decide(const DecisionRules &rules, bool nonfinite, double squares, StepState &run);

}  // namespace zero::kernels
