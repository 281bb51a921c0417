/// @file Text digests of the settings on which ranks must agree at seal and in each step, and a
/// comparison that reports the first line that differs.
#pragma once

#include "core/task.h"
#include "engine/config/hyper_set.h"
#include "engine/layout/params.h"
#include "group/group.h"
#include "kernels/step_decision.h"

#include <span>
#include <string>

namespace zero {

/// The registered sets, parameters and gather order, as text. Settings and loss scale are not part
/// of it.
std::string config_digest(std::span<const HyperSet> sets, const Params &params, std::span<const int64_t> gather_order);

/// The values that a caller may set between steps, as text. `run` nullptr: hyper-parameters alone.
std::string run_text(std::span<const HyperSet> sets, const kernels::StepState *run);

/// If texts differ, returns ZERO_E_MISMATCH with `what` and the first difference, the same on all
/// ranks, and poisons the group.
Task compare_texts(Group &group, const char *what, const std::string &mine);

}  // namespace zero
