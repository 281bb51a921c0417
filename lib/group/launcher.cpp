/// @file Reads the variables of Open MPI, MPICH, PMIx, Slurm, torchrun and Kubernetes' operators.
/// The inner launcher wins, unless it would hide ranks of the outer one.
#include "group/launcher.h"

#include "group/slurm_step.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace zero {
namespace {

constexpr const char *kOpenMpi = "Open MPI";
constexpr const char *kKubernetes = "Kubernetes";

/// The worlds of MPI launchers and of Slurm, inner ones first.
struct Worlds {
  std::vector<World> all;
  std::optional<SlurmStep> step;  ///< the last of `all`, if this is a step of Slurm

  bool only_slurm() const { return step && all.size() == 1; }
};

/// True if MPICH's variables come from Slurm's own PMI. On one node they add nothing to Slurm's
/// variables: mpirun starts its ranks there from a step of one task.
bool is_slurms_own(const World &hydra, const std::optional<SlurmStep> &step) {
  return step && step->node_count == 1 && hydra.size == step->world.size;
}

Status read_worlds(const Environment &environment, Worlds *out) {
  std::optional<World> open_mpi;
  std::optional<World> hydra;
  ZERO_TRY(read_pair(environment, kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &open_mpi));
  ZERO_TRY(read_pair(environment, "MPICH", "PMI_RANK", "PMI_SIZE", &hydra));
  ZERO_TRY(read_slurm_step(environment, &out->step));
  if (open_mpi) out->all.push_back(*open_mpi);
  if (hydra && !is_slurms_own(*hydra, out->step)) out->all.push_back(*hydra);
  if (out->step) out->all.push_back(out->step->world);
  return {};
}

/// mpirun and torchrun may run in a step of srun with another number of tasks. But a world of one
/// inside a larger world is N separate programs.
Status check_nesting(const std::vector<World> &worlds) {
  for (const World &outer : worlds) {
    const World &inner = worlds.front();
    ZERO_CHECK(
        inner.size > 1 || outer.size == 1, ZERO_E_LAUNCHER,
        "%s started %lld rank (%s) inside the %lld ranks of %s (%s), so each would train alone; use one launcher, or start all ranks "
        "with the inner one",
        inner.launcher, lld(inner.size), inner.size_variable, lld(outer.size), outer.launcher, outer.size_variable);
  }
  return {};
}

/// Returns a short name that differs between runs and ports. On one host it also differs between
/// restarts.
/// Over several hosts it does not, because each agent counts restarts separately. There, ranks of a
/// restarted run still do not meet ranks of the run before. torchrun's agents end all ranks before
/// they start new ones, and rank 0 listens only until all ranks have met.
/// A rank that outlives its agent may still reach the new rank 0. Mostly it then appears as a
/// duplicate rank, which is an error on all ranks.
std::string torchrun_meeting_name(const Environment &environment, Launch::Kind kind) {
  if (kind == Launch::Kind::hosts) return name_from(environment, "torchrun", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"});
  return name_from(environment, "torchrun", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"});
}

/// Reads the meeting place of ranks on several hosts from two variables. Its port is next to the
/// launcher's own port.
Status read_master(const Environment &environment, const char *address_variable, const char *port_variable, Launch *out) {
  const char *address = value_of(environment, address_variable);
  const char *port = value_of(environment, port_variable);
  ZERO_CHECK(address != nullptr && port != nullptr, ZERO_E_LAUNCHER,
             "%s started %lld ranks on several hosts (%s), but %s is not set, so the hosts cannot find each other; start with torchrun or "
             "mpirun",
             out->launcher.c_str(), lld(out->size), out->variable.c_str(), address == nullptr ? address_variable : port_variable);
  out->master = address;
  ZERO_TRY(read_number(port_variable, port, &out->master_port));
  ++out->master_port;
  return {};
}

Launch launch_of(const World &world, Launch::Kind kind) {
  return {.kind = world.size > 1 ? kind : Launch::Kind::single,
          .rank = world.rank,
          .size = world.size,
          .launcher = world.launcher,
          .variable = world.size_variable};
}

Status read_torchrun(const Environment &environment, const World &world, const World &local, Launch *out) {
  ZERO_CHECK(local.size <= world.size, ZERO_E_LAUNCHER, "LOCAL_WORLD_SIZE is %lld but WORLD_SIZE is %lld; start with torchrun or mpirun",
             lld(local.size), lld(world.size));
  const auto kind = local.size < world.size ? Launch::Kind::hosts : Launch::Kind::local;
  *out = launch_of(world, kind);
  out->name = torchrun_meeting_name(environment, kind);
  if (kind == Launch::Kind::hosts) return read_master(environment, "MASTER_ADDR", "MASTER_PORT", out);
  ZERO_CHECK(local.rank == world.rank, ZERO_E_LAUNCHER, "RANK is %lld but LOCAL_RANK is %lld, although all %lld ranks are on this host",
             lld(world.rank), lld(local.rank), lld(world.size));
  ZERO_CHECK(value_of(environment, "TORCHELASTIC_RUN_ID") != nullptr || value_of(environment, "MASTER_PORT") != nullptr, ZERO_E_LAUNCHER,
             "WORLD_SIZE is %lld but neither TORCHELASTIC_RUN_ID nor MASTER_PORT is set, so the ranks have no name to meet by; start with "
             "torchrun or mpirun",
             lld(world.size));
  return {};
}

/// Kubeflow's operators set RANK and WORLD_SIZE in each pod; torchrun in the pod replaces them. A
/// pod without torchrun is one rank if it runs one process. "auto", the operators' default, also
/// means one process per pod.
Status read_pods(const Environment &environment, const World &world, Launch *out) {
  const char *processes = value_of(environment, "PET_NPROC_PER_NODE");
  const bool in_pod = value_of(environment, "KUBERNETES_SERVICE_HOST") != nullptr;
  const bool one = processes != nullptr ? std::strcmp(processes, "1") == 0 || (in_pod && std::strcmp(processes, "auto") == 0) : in_pod;
  ZERO_CHECK(one, ZERO_E_LAUNCHER,
             "WORLD_SIZE is %lld but LOCAL_WORLD_SIZE is not set%s%s, so it is unknown which ranks share this host; start with torchrun or "
             "mpirun, or with PET_NPROC_PER_NODE=1 where each host or pod runs one rank",
             lld(world.size), processes != nullptr ? " and PET_NPROC_PER_NODE is " : "", processes != nullptr ? processes : "");
  *out = launch_of(world, Launch::Kind::hosts);
  out->launcher = kKubernetes;
  // The address is not part of the name: rank 0's own pod may call it "localhost".
  out->name = name_from(environment, "pods", {"MASTER_PORT"});
  return read_master(environment, "MASTER_ADDR", "MASTER_PORT", out);
}

/// torchrun's options as variables, which Kubeflow's trainer sets in each pod. They describe nodes.
/// They describe ranks only if torchrun is to start one rank per node.
Status read_nodes(const Environment &environment, Launch *out) {
  const char *nodes = value_of(environment, "PET_NNODES");
  if (nodes == nullptr || std::strcmp(nodes, "1") == 0 || std::strcmp(nodes, "1:1") == 0) return {};
  const char *processes = value_of(environment, "PET_NPROC_PER_NODE");
  ZERO_CHECK((processes == nullptr || std::strcmp(processes, "1") == 0) && std::strchr(nodes, ':') == nullptr, ZERO_E_LAUNCHER,
             "PET_NNODES is \"%s\" and PET_NPROC_PER_NODE is \"%s\", so torchrun is to start the ranks of each node, but RANK and "
             "WORLD_SIZE are not set; start with torchrun, or set PET_NPROC_PER_NODE to 1 where each node or pod runs one rank",
             nodes, processes != nullptr ? processes : "");
  std::optional<World> world;
  ZERO_TRY(read_pair(environment, kKubernetes, "PET_NODE_RANK", "PET_NNODES", &world));
  Launch launch = launch_of(*world, Launch::Kind::hosts);
  launch.name = name_from(environment, "pods", {"PET_MASTER_PORT"});
  ZERO_TRY(read_master(environment, "PET_MASTER_ADDR", "PET_MASTER_PORT", &launch));
  *out = launch;
  return {};
}

/// Reads a step whose tasks know each other only through Slurm.
Status read_step(const Environment &environment, const SlurmStep &step, Launch *out) {
  *out = launch_of(step.world, step.node_count == 1 ? Launch::Kind::local : Launch::Kind::hosts);
  if (out->kind == Launch::Kind::single) return {};
  ZERO_TRY(slurm_meeting_name(environment, &out->name));
  if (out->kind == Launch::Kind::local) return {};
  out->mpi_as_well = true;
  return slurm_meeting_place(environment, &out->master, &out->master_port);
}

/// PMIx gives MPI the number of ranks, but no variable has it.
Status check_pmix(const Environment &environment) {
  const char *rank = value_of(environment, "PMIX_RANK");
  ZERO_CHECK(rank == nullptr || value_of(environment, "PMIX_NAMESPACE") == nullptr, ZERO_E_LAUNCHER,
             "PMIX_RANK is %s, but no variable says how many ranks were started; start them with mpirun or srun, or unset it", rank);
  return {};
}

/// True if MPI's launchers started torchrun's agents, so that torchrun's ranks are the inner ones.
/// torchrun sets its run id; scripts that set RANK and WORLD_SIZE do not. Other launchers of this
/// kind (Ray) do not set it either, but under Slurm they have more ranks than Slurm has tasks.
/// Rank numbers are not compared: they may be equal by chance, and all ranks must decide alike.
bool torchrun_is_inner(const Environment &environment, const Worlds &worlds, const World &torch) {
  if (worlds.all.empty() || value_of(environment, "LOCAL_WORLD_SIZE") == nullptr) return false;
  if (value_of(environment, "TORCHELASTIC_RUN_ID") != nullptr) return true;
  return worlds.only_slurm() && torch.size > worlds.step->world.size;
}

/// A script may set RANK and WORLD_SIZE from mpirun's variables. Any other difference means two
/// launchers with two worlds.
Status check_same(const World &mpi, const World &torch) {
  ZERO_CHECK(mpi.rank == torch.rank && mpi.size == torch.size, ZERO_E_LAUNCHER,
             "%s says rank %lld of %lld (%s) but RANK and WORLD_SIZE say rank %lld of %lld; use one launcher, and where a script sets RANK "
             "and WORLD_SIZE, set them to that launcher's numbers",
             mpi.launcher, lld(mpi.rank), lld(mpi.size), mpi.size_variable, lld(torch.rank), lld(torch.size));
  return {};
}

Status read_torch_world(const Environment &environment, const World &torch, Launch *out) {
  *out = launch_of(torch, Launch::Kind::single);
  if (torch.size == 1) return {};
  std::optional<World> local;
  ZERO_TRY(read_pair(environment, "torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE", &local));
  return local ? read_torchrun(environment, torch, *local, out) : read_pods(environment, torch, out);
}

Status read_mpi_world(const Environment &environment, const Worlds &worlds, Launch *out) {
  // Without the number of nodes, only MPI knows the world.
  const bool alone = worlds.only_slurm() && !step_has_pmix(environment) && worlds.step->node_count > 0;
  if (alone) return read_step(environment, *worlds.step, out);
  *out = launch_of(worlds.all.front(), Launch::Kind::mpi);
  return {};
}

const char *process_variable(const char *name) { return std::getenv(name); }

/// Returns 4 for "Open MPI v4.1.4, package: ...", and 0 for another MPI.
int64_t open_mpi_release(const std::string &library) {
  int release = 0;
  return std::sscanf(library.c_str(), "Open MPI v%d", &release) == 1 ? release : 0;
}

}  // namespace

Status read_launch(const Environment &environment, Launch *out) {
  Worlds worlds;
  std::optional<World> torch;
  ZERO_TRY(read_worlds(environment, &worlds));
  ZERO_TRY(read_pair(environment, "torchrun", "RANK", "WORLD_SIZE", &torch));
  const bool torch_inner = torch && torchrun_is_inner(environment, worlds, *torch);
  if (torch_inner) worlds.all.insert(worlds.all.begin(), *torch);
  ZERO_TRY(check_nesting(worlds.all));
  if (!worlds.all.empty() && torch) ZERO_TRY(check_same(worlds.all.front(), *torch));
  Launch launch;
  if (torch && (torch_inner || worlds.all.empty())) {
    ZERO_TRY(read_torch_world(environment, *torch, &launch));
  } else if (!worlds.all.empty()) {
    ZERO_TRY(read_mpi_world(environment, worlds, &launch));
  } else {
    ZERO_TRY(check_pmix(environment));
    ZERO_TRY(read_nodes(environment, &launch));
  }
  *out = launch;
  return {};
}

Status read_launch(Launch *out) { return read_launch(process_variable, out); }

Status check_direct_launch(const Environment &environment, const std::string &library) {
  const int64_t release = open_mpi_release(library);
  std::optional<SlurmStep> step;
  ZERO_TRY(read_slurm_step(environment, &step));
  if (release == 0 || !step || step_has_pmix(environment)) return {};
  ZERO_CHECK(
      step->world.size == 1 && release >= 5, ZERO_E_LAUNCHER,
      "Slurm's srun started this process without PMIx, as task %lld of %lld (SLURM_PROCID, SLURM_STEP_NUM_TASKS), and Open MPI would "
      "end it; start with srun --mpi=pmix or with mpirun. Without MPI, zero_group_create_env joins the tasks of one node, and with "
      "ZERO_KEY_NCCL those of several",
      lld(step->world.rank), lld(step->world.size));
  return {};
}

Status check_direct_launch(const std::string &library) { return check_direct_launch(process_variable, library); }

Status check_world(const Environment &environment, int64_t world_size) {
  Worlds worlds;
  ZERO_TRY(read_worlds(environment, &worlds));
  if (worlds.all.empty()) return {};
  for (const World &world : worlds.all) {
    if (world.size == world_size) return {};
  }
  const World &world = worlds.all.front();
  return Status::error(ZERO_E_LAUNCHER,
                       "%s started %lld ranks (%s) but MPI's world has %lld: this MPI does not know that launcher, so every process is a "
                       "world of its own; use the mpirun of the MPI that libzero_mpi.so was built for, or a launcher with its process "
                       "management (srun --mpi=pmix)",
                       world.launcher, lld(world.size), world.size_variable, lld(world_size));
}

Status check_world(int64_t world_size) { return check_world(process_variable, world_size); }

}  // namespace zero
