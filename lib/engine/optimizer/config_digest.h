/// @file What ranks must agree on at seal and in each step, as lines of text, and the comparison that names the first line that differs.
#pragma once

#include "core/task.h"
#include "engine/config/hyper_set.h"
#include "engine/layout/params.h"
#include "group/group.h"
#include "kernels/step_decision.h"

#include <span>
#include <string>

namespace zero {

/// What the optimizer was built from, beside its settings and loss scale.
std::string config_digest(std::span<const HyperSet> sets, const Params &params, std::span<const int64_t> gather_order);

/// What a caller may set between steps. `run` may be nullptr: hyper-parameters alone.
std::string run_text(std::span<const HyperSet> sets, const kernels::StepState *run);

/// ZERO_E_MISMATCH with `what` differs and the first difference, the same on every rank, when texts differ; then the group is poisoned.
Task compare_texts(Group &group, const char *what, const std::string &mine);

}  // namespace zero
