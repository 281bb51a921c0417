/// @file SlurmStep: what Slurm's variables say about the job step that this process is a task of. Knows no other launcher.
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
  int64_t node_count = 0;  ///< 0: not told
};

/// Empty outside of a step: a batch script or a shell of salloc has the variables of the whole allocation, but none of a step.
Status read_slurm_step(const Environment &environment, std::optional<SlurmStep> *out);

/// Whether something besides Slurm tells the tasks of the step of one another: PMIx, or a launcher of Open MPI within the step.
bool step_has_pmix(const Environment &environment);

/// What the tasks of a step meet by: another name for each step, and for each start of a job that was requeued.
Status slurm_meeting_name(const Environment &environment, std::string *out);

/// Where rank 0 of a step over several nodes is, and a port there that is the same for all tasks of the step.
Status slurm_meeting_place(const Environment &environment, std::string *out_host, int64_t *out_port);

/// The first host of a list as Slurm writes it: "n3" of "n[3-5,9],login1", "rack1n01" of "rack[1-2]n[01-16]". Empty for what is no list.
std::string first_of_hosts(std::string_view list);

}  // namespace zero
