/// @file What calls on an optimizer that may wait for other ranks begin with.
#pragma once

#include "api/request.h"

#include <zero/optimizer.h>

#include <memory>

namespace zero::api {

/// The optimizer of a handle, in whose queue the work will run; `stream` is one of its device or NULL.
Status find_optimizer(Work &work, const zero_optimizer *handle, void *stream, std::shared_ptr<Optimizer> *out);

}  // namespace zero::api
