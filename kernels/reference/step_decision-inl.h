/// @file The decision of a step: step_decision.h states the formula.
#pragma once

#include "kernels/reference/element.h"
#include "kernels/reference/float_bits.h"
#include "kernels/step_decision.h"

#include <cmath>

namespace zero::kernels::reference {

ZERO_ELEMENT void follow_overflow(const LossScaleRules &rules, bool overflowed, LossScaleState &scale) {
  if (rules.dynamic == 0) return;
  if (overflowed) {
    scale.growth_count = 0;
    if (scale.overflow_count + 1 < rules.hysteresis) {
      ++scale.overflow_count;
      return;
    }
    const double smaller = scale.value * rules.backoff;
    scale.value = smaller > rules.least ? smaller : rules.least;
    return;
  }
  if (++scale.growth_count < rules.window) return;
  scale.growth_count = 0;
  scale.overflow_count = 0;
  const double larger = scale.value * rules.growth;
  scale.value = larger < rules.most ? larger : rules.most;
}

ZERO_ELEMENT void decide(const DecisionRules &rules, bool nonfinite, double squares, StepState &run) {
  constexpr double kClipEpsilon = 1e-6;
  const double scale = rules.grad_scale > 0 ? rules.grad_scale : run.loss_scale.value;
  const bool found = nonfinite || (rules.has_norm != 0 && !std::isfinite(squares));
  run.skips = rules.skips_nonfinite != 0 && found ? 1 : 0;
  run.skipped_count += run.skips;
  // NaN has other bits on devices.
  run.grad_norm = rules.has_norm != 0 ? canonical(std::sqrt(squares) / scale) : 0;
  double factor = 1;
  if (rules.clip_norm > 0) factor = rules.clip_norm / (run.grad_norm + kClipEpsilon);
  if (factor > 1) factor = 1;
  run.grad_factor = canonical(static_cast<double>(static_cast<float>(factor / scale)));
  follow_overflow(rules.loss_scale, run.skips != 0, run.loss_scale);
}

}  // namespace zero::kernels::reference
