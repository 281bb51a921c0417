/// @file Verdicts of the host.
#include "kernels/verdict.h"

#include "kernels/reference/verdict-inl.h"

namespace zero::kernels {

void judge(const VerdictRules &rules, bool nonfinite, double squares, RunState &run) { reference::judge(rules, nonfinite, squares, run); }

}  // namespace zero::kernels
