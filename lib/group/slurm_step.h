/// @file SlurmStep: the job step of this process, as Slurm's variables describe it. Knows no other
/// launcher.
#pragma once

#include "group/launch_variables.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zero {

inline constexpr const char *kSlurm = "Slurm's srun";

struct SlurmStep {
  World world;
  int64_t node_count = 0;  ///< 0: not known
};

/// Returns an empty step outside of a step. A batch script or a shell of salloc has variables of
/// the allocation, but none of a step.
Status read_slurm_step(const Environment &environment, std::optional<SlurmStep> *out);

/// True if the tasks of the step know each other through another system than Slurm: PMIx, or a
/// launcher of Open MPI within the step.
bool step_has_pmix(const Environment &environment);

/// The name by which the tasks of a step meet. It differs between steps, and between starts of a
/// job that was requeued.
Status slurm_meeting_name(const Environment &environment, std::string *out);

/// The host of rank 0 in a step over several nodes, and a port there that is the same for all tasks
/// of the step.
Status slurm_meeting_place(const Environment &environment, std::string *out_host, int64_t *out_port);

/// The first host of a list in Slurm's notation: "n3" of "n[3-5,9],login1", "rack1n01" of
/// "rack[1-2]n[01-16]". Empty if the text is not such a list.
std::string first_of_hosts(std::string_view list);

}  // namespace zero
