/// @file Exit release: the only function that libzero runs at exit, and only after it has
/// initialised MPI.
#include "api/exit_release.h"

#include "api/handles.h"
#include "core/fork_guard.h"
#include "group/mpi/mpi_root.h"

#include <atomic>
#include <cstdlib>

namespace zero::api {
namespace {

/// Requests keep their objects alive, so MPI is not finalised while one runs.
void release_all(int status, void *) {
  if (status != 0 || forked() || !mpi_awaits_release()) return;
  for (const Kind kind : {Kind::checkpoint, Kind::optimizer, Kind::buffer, Kind::group}) remove_handles(kind);
}

}  // namespace

Task released_at_exit(Task making) {
  ZERO_CO_AWAIT(making);
  static std::atomic<bool> registered{false};
  if (mpi_awaits_release() && !registered.exchange(true)) (void)::on_exit(release_all, nullptr);
  co_return Status();
}

}  // namespace zero::api
