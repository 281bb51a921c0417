/// @file What ranks must agree on at seal, as lines of text, and the comparison that names the first line that differs.
#pragma once

#include "core/task.h"
#include "engine/hyper_set.h"
#include "engine/loss_scale.h"
#include "engine/params.h"
#include "engine/settings.h"
#include "group/group.h"

#include <span>
#include <string>

namespace zero {

std::string sealed_text(const Settings &settings, std::span<const HyperSet> sets, const LossScale &scale, const Params &params);

/// ZERO_E_MISMATCH with the first difference, the same on every rank, when texts differ; then the group is poisoned.
Task compare_texts(Group &group, const std::string &mine);

}  // namespace zero
