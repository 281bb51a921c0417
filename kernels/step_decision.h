/// @file Decisions: what becomes of a step once its gradients are known: whether it is skipped, what gradients are multiplied by, and the
/// next loss scale. The host and devices share the formula (reference/step_decision-inl.h).
///
///   squares = sum of squares of the reduced gradients, as they are stored, with the loss scale in them
///   norm = sqrt(squares) / scale where it is wanted, otherwise 0
///   factor = fp32(min(1, clip_norm / (norm + 1e-6)) / scale), as torch.nn.utils.clip_grad_norm_ clips; without clipping fp32(1 / scale)
///
/// The dynamic loss scale (Micikevicius et al., "Mixed Precision Training", 2018, section 3.2) falls with an overflow, once hysteresis has
/// swallowed its share, and grows after a window of steps without one.
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
};

struct LossScaleState {
  double value = 1;
  int64_t growth_count = 0;    ///< steps without overflow since the scale last changed
  int64_t overflow_count = 0;  ///< overflows since the scale last grew that hysteresis has swallowed
};

/// What goes on from one step of an optimizer to the next, and its newest decision. Fields of 8 bytes only.
struct StepState {
  int64_t applied_count = 0;
  int64_t skipped_count = 0;
  LossScaleState loss_scale;
  int64_t skips = 0;
  double grad_norm = 0;
  double grad_factor = 1;  ///< an fp32
};

/// The decision of a step. `nonfinite`: a gradient was not finite on some rank. A norm that is not finite says so too.
void decide(const DecisionRules &rules, bool nonfinite, double squares, StepState &run);

}  // namespace zero::kernels
