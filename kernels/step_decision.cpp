/// @file Step decisions on the host.
#include "kernels/step_decision.h"

#include "kernels/reference/step_decision-inl.h"

namespace zero::kernels {

void decide(const DecisionRules &rules, bool nonfinite, double squares, StepState &run) {
  reference::decide(rules, nonfinite, squares, run);
}

}  // namespace zero::kernels
