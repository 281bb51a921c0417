/// @file The properties of the MPI module, and the check that it fits the program's MPI.
#include "group/mpi/mpi_module.h"

#include "core/log.h"
#include "core/module.h"

#include <dlfcn.h>

namespace zero {
namespace {

/// Refuses a module of another MPI than the program's, because it would call into the wrong one.
Status check_same_mpi(void *module, const std::string &path) {
  const std::string global = file_of(::dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
  const std::string own = file_of(::dlsym(module, "MPI_Init_thread"));
  ZERO_CHECK(global.empty() || own.empty() || real_path(global) == real_path(own), ZERO_E_MODULE,
             "this process uses the MPI of %s, but the module %s was built for that of %s; build the module with the program's MPI",
             global.c_str(), path.c_str(), own.c_str());
  return {};
}

/// RTLD_GLOBAL, because Open MPI's plugins are linked to nothing and look for libmpi's symbols in
/// the global scope.
constexpr ModuleKind kMpi = {.noun = "MPI module",
                             .file_name = "libzero_mpi.so",
                             .variable = "ZERO_MPI_MODULE",
                             .symbol = ZERO_MPI_MODULE_SYMBOL,
                             .build = ZERO_MPI_BUILD,
                             .table_nbytes = sizeof(zero_mpi_table),
                             .flags = RTLD_GLOBAL,
                             .help =
                                 "build libzero with ZERO_MPI=ON or build the module alone with the site's mpicc, install the MPI it was "
                                 "built for (Open MPI: openmpi-bin, MPICH: mpich), or name its file with the key ZERO_KEY_MPI_MODULE "
                                 "or the variable ZERO_MPI_MODULE",
                             .check = &check_same_mpi};

}  // namespace

Status load_mpi_module(const std::string &path, const zero_mpi_table **out) {
  // Never destroyed: the library leaves nothing to run at exit.
  static auto *module = new Module(kMpi);
  bool loaded = false;
  ZERO_TRY(load_table(*module, path, out, &loaded));
  if (loaded) {
    char library[256];
    (*out)->library_text(library, sizeof library);
    log_line("MPI module %s loaded: %s", module->path().c_str(), library);
  }
  return {};
}

}  // namespace zero
