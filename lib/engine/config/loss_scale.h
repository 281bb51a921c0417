/// @file LossScale: the options of loss scaling, which keeps small gradients from underflow in 16
/// bits. kernels/step_decision.h adapts the scale to overflows. Knows no gradients.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "kernels/step_decision.h"

#include <string>

namespace zero {

class LossScale {
 public:
  /// `skips`: steps with overflows are skipped. The dynamic scale requires it.
  Status read(const Config &config, bool skips);

  const kernels::LossScaleRules &rules() const { return rules_; }
  /// The state before the first step.
  const kernels::LossScaleState &first() const { return first_; }
  Status set(double value, kernels::LossScaleState &state) const;
  /// One line for each key.
  std::string text(const kernels::LossScaleState &state) const;

 private:
  kernels::LossScaleRules rules_;
  kernels::LossScaleState first_;
};

}  // namespace zero
