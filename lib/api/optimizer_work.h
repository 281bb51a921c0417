/// @file Optimizer work: the beginning of calls on an optimizer that may wait for other ranks.
#pragma once

#include "api/request.h"

#include <zero/optimizer.h>

#include <memory>

namespace zero::api {

/// Finds the optimizer of a handle, in whose queue the work will run. `stream` is one of its device
/// or NULL.
Status find_optimizer(Work &work, const zero_optimizer *handle, void *stream, std::shared_ptr<Optimizer> *out);

}  // namespace zero::api
