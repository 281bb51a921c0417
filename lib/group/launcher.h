/// @file Launch: the world that a launcher's variables describe. A pure function of the variables;
/// starts and connects nothing.
#pragma once

#include "core/status.h"
#include "group/launch_variables.h"

#include <cstdint>
#include <string>

namespace zero {

struct Launch {
  enum class Kind {
    single,  ///< a world of one
    local,   ///< processes of this host, which meet by name
    hosts,   ///< processes of several hosts, which meet at rank 0's host
    mpi,     ///< the ranks of MPI_COMM_WORLD
  };
  Kind kind = Kind::single;
  int64_t rank = 0;
  int64_t size = 1;
  /// "Open MPI", "MPICH", "Slurm's srun", "torchrun", "Kubernetes"; "" without a launcher.
  std::string launcher;
  /// The variable with the launcher's number of ranks; "" without a launcher.
  std::string variable;
  /// `local`: the name by which the ranks meet. `hosts`: the name of their meeting, the same after
  /// every restart.
  std::string name;
  std::string master;  ///< `hosts`: name or address of rank 0's host
  /// `hosts`: the port at which rank 0 listens there, unless another is configured.
  int64_t master_port = 0;
  /// `hosts`: without devices, the ranks are those of MPI_COMM_WORLD, if its library knows them.
  bool mpi_as_well = false;
};

/// Reads the launch of this process. Returns ZERO_E_LAUNCHER if variables contradict each other or
/// describe a world that this version cannot connect.
Status read_launch(const Environment &environment, Launch *out);
/// The same for the variables of this process.
Status read_launch(Launch *out);

/// Call it before MPI is initialised. Returns ZERO_E_LAUNCHER in a Slurm step without PMIx, in
/// which Open MPI would end the process. Open MPI 5 treats a single task as a world of one, which
/// is allowed. `library` is the text of MPI_Get_library_version.
Status check_direct_launch(const Environment &environment, const std::string &library);
Status check_direct_launch(const std::string &library);

/// Returns ZERO_E_LAUNCHER if MPI's world has another size than the launcher's variables: each
/// process would then run as a world of its own.
Status check_world(const Environment &environment, int64_t world_size);
Status check_world(int64_t world_size);

}  // namespace zero
