/// @file Launch: what a launcher's variables say about the world. A pure function of the variables; starts and connects nothing.
#pragma once

#include "core/status.h"
#include "group/launch_variables.h"

#include <cstdint>
#include <string>

namespace zero {

struct Launch {
  enum class Kind {
    single,  ///< a world of one
    local,   ///< processes of this host that meet by name
    hosts,   ///< processes of several hosts that meet at rank 0's
    mpi,     ///< the ranks of MPI_COMM_WORLD
  };
  Kind kind = Kind::single;
  int64_t rank = 0;
  int64_t size = 1;
  std::string launcher;      ///< "Open MPI", "MPICH", "Slurm's srun", "torchrun", "Kubernetes"; "" without one
  std::string variable;      ///< gives the launcher's number of ranks; "" without one
  std::string name;          ///< local: where the ranks meet; hosts: what they tell their meeting by, the same after every restart
  std::string master;        ///< hosts: the name or address of rank 0's
  int64_t master_port = 0;   ///< hosts: where rank 0 listens there, unless told otherwise
  bool mpi_as_well = false;  ///< hosts: without devices, the ranks are those of MPI_COMM_WORLD, if its library finds them
};

/// What this process was started as. ZERO_E_LAUNCHER when variables contradict each other or describe a world this version cannot connect.
Status read_launch(const Environment &environment, Launch *out);
/// From the variables of this process.
Status read_launch(Launch *out);

/// Before MPI is initialised: ZERO_E_LAUNCHER in a step of Slurm in which Open MPI would end the process, as nothing tells it of the other
/// tasks. Release 5 takes a task alone for a world of one. `library` is the text of MPI_Get_library_version.
Status check_direct_launch(const Environment &environment, const std::string &library);
Status check_direct_launch(const std::string &library);

/// ZERO_E_LAUNCHER when MPI's world has another size than the launcher's variables say: then each process runs as a world of its own.
Status check_world(const Environment &environment, int64_t world_size);
Status check_world(int64_t world_size);

}  // namespace zero
