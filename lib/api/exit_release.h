/// @file Exit release: finalises MPI if a program ends successfully without releasing its groups.
/// Knows handles and that MPI waits for a release; nothing of groups.
#pragma once

#include "core/task.h"

namespace zero::api {

/// Wraps the creation of a group that may start MPI. If libzero has started MPI, and a process ends
/// with status 0 while it holds groups, its groups are released first, as the program should have
/// done. Otherwise MPI would not be finalised, and the launcher would report a failed run. A
/// process that ends with another status does not wait for other ranks; the launcher handles its
/// failure.
Task released_at_exit(Task making);

}  // namespace zero::api
