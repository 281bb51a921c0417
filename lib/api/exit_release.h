/// @file What becomes of MPI where a program ends well without having released its groups.
/// Knows handles and that MPI waits for a release; nothing of groups.
#pragma once

#include "core/task.h"

namespace zero::api {

/// The making of a group that may start MPI. Where libzero has started it, a process that ends with status 0 and holds groups still
/// releases them first, as the program should have: otherwise MPI is not finalised, and the launcher calls the run a failure. A process
/// that ends with another status does not wait for the others, and what has failed is left to the launcher.
Task released_at_exit(Task making);

}  // namespace zero::api
