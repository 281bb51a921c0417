/// @file LossScale: what the caller multiplies its loss by, so that small gradients survive in 16 bits: what the config says about it. How
/// it follows overflows is kernels/step_decision.h's. Knows no gradients.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "kernels/step_decision.h"

#include <string>

namespace zero {

class LossScale {
 public:
  /// `skips`: overflows make steps be skipped, which the dynamic scale needs.
  Status read(const Config &config, bool skips);

  const kernels::LossScaleRules &rules() const { return rules_; }
  /// Before the first step.
  const kernels::LossScaleState &first() const { return first_; }
  Status set(double value, kernels::LossScaleState &state) const;
  /// A line for each key.
  std::string text(const kernels::LossScaleState &state) const;

 private:
  kernels::LossScaleRules rules_;
  kernels::LossScaleState first_;
};

}  // namespace zero
